// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The walk over a body (body.hpp): what it names, calls and destroys (body.cpp), and each kind of
// statement and expression (statements.cpp).
#pragma once

#include "body.hpp"

#include <clang/AST/ASTContext.h>
#include <clang/AST/ExprCXX.h>
#include <clang/AST/StmtCXX.h>

namespace hf::classify {

class walk {
public:
    walk(const clang::ASTContext& context, const definitions& all) : context_(context), all_(all) {}
    body function(const clang::FunctionDecl& f);

private:
    void find(clang::SourceLocation at, std::string what);
    void calls(clang::SourceLocation at, const clang::FunctionDecl* callee);
    void destroys(clang::SourceLocation at, clang::QualType type);
    void destroys_members(const clang::CXXDestructorDecl& destructor);
    void names(clang::SourceLocation at, const clang::VarDecl& variable);
    void declares(const clang::Decl& declared);

    void visit(const clang::Stmt* s); // null is nothing
    void children(const clang::Stmt& s);
    bool visit_leaf(const clang::Stmt& s);
    bool visit_plain(const clang::Stmt& s);
    bool visit_refused(const clang::Stmt& s);
    bool visit_statement(const clang::Stmt& s);
    bool visit_call(const clang::Expr& e);
    bool visit_object(const clang::Expr& e);
    bool visit_indirect(const clang::Expr& e);
    bool visit_operand(const clang::Expr& e);
    void visit_if(const clang::IfStmt& s);
    void visit_new(const clang::CXXNewExpr& e);
    void visit_member(const clang::MemberExpr& e);
    void visit_binary(const clang::BinaryOperator& e);
    void visit_cast(const clang::CastExpr& e);
    void reinterprets(const clang::CastExpr& e);
    void removes_const(const clang::ExplicitCastExpr& e);
    void check_type(const clang::Expr& e);

    const clang::ASTContext& context_;
    const definitions& all_;
    body out_;
};

} // namespace hf::classify
