// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
#include "StoredTypes.h"
#include "Refusals.h"

#include "clang/AST/ASTContext.h"
#include "clang/AST/DeclTemplate.h"
#include "clang/AST/RecursiveASTVisitor.h"
#include "clang/Basic/SourceManager.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/ADT/SmallSet.h"

using namespace clang;

namespace holdfast {
namespace {

/// Where a program names a function of Holdfast's that stores this type.
class UseFinder : public RecursiveASTVisitor<UseFinder> {
public:
  UseFinder(ASTContext &Context, QualType Stored)
      : Sources(Context.getSourceManager()), Wanted(Stored.getCanonicalType()) {
    TraverseDecl(Context.getTranslationUnitDecl());
  }
  SourceLocation found() const { return Found; }
  bool shouldVisitTemplateInstantiations() const { return true; }

  bool VisitDeclRefExpr(DeclRefExpr *E) { return look(E->getDecl(), *E); }
  bool VisitMemberExpr(MemberExpr *E) { return look(E->getMemberDecl(), *E); }

private:
  bool look(const ValueDecl *To, const Expr &From) {
    const auto *Function = dyn_cast<FunctionDecl>(To);
    if (!Function || !Function->getTemplateSpecializationArgs())
      return true;
    for (const TemplateArgument &Argument :
         Function->getTemplateSpecializationArgs()->asArray())
      if (Argument.getKind() == TemplateArgument::Type &&
          Argument.getAsType().getCanonicalType() == Wanted &&
          inHoldfast(Function) && !inHoldfast(From.getExprLoc())) {
        Found = From.getExprLoc();
        return false;
      }
    return true;
  }
  bool inHoldfast(const FunctionDecl *Function) const {
    return inHoldfast(Function->getLocation());
  }
  bool inHoldfast(SourceLocation At) const {
    return Sources.getFilename(Sources.getExpansionLoc(At))
        .contains("holdfast/");
  }

  const SourceManager &Sources;
  const QualType Wanted;
  SourceLocation Found;
};

class TypeWalk {
public:
  TypeWalk(ASTContext &Context, DiagnosticsEngine &Diagnostics)
      : Context(Context), Diagnostics(Diagnostics),
        Error(Diagnostics.getCustomDiagID(DiagnosticsEngine::Error,
                                          "%0 cannot live in a pool: %1 %2")),
        Note(Diagnostics.getCustomDiagID(
            DiagnosticsEngine::Note,
            "a pool stores %0 here. Mark HF_VOLATILE_OK what the program sets "
            "anew after each open")) {}

  void look(QualType Stored, SourceLocation At) {
    Root = Stored;
    RootAt = At;
    walk(Stored, printed(Stored), SourceLocation());
  }

  /// Reports what was found where no line of the program's names it, such as an
  /// element of a container, unless it was reported elsewhere.
  void finish() {
    for (const Refused &Each : Unplaced)
      if (!Types.contains(Each.Type.getCanonicalType().getTypePtr()))
        say(Each.Type, Each.Path, Each.Reason, Each.At);
  }

private:
  std::string printed(QualType Type) const {
    return Type.getAsString(Context.getPrintingPolicy());
  }

  void walk(QualType Type, const std::string &Path, SourceLocation At) {
    Type = Context.getBaseElementType(Type);
    if (const auto *Atomic = Type->getAs<AtomicType>())
      Type = Atomic->getValueType();
    if (std::optional<std::string> Reason = refusal(Type))
      return report(Type, Path, At, *Reason);
    const CXXRecordDecl *Record = Type->getAsCXXRecordDecl();
    if (!Record || !Record->hasDefinition() ||
        !Seen.insert(Record->getCanonicalDecl()).second)
      return;
    Record = Record->getDefinition();
    if (Record->isEmpty()) // std::less<std::string_view> holds no view
      return;
    if (isOfLibrary(*Record)) {
      for (QualType Argument : templateArguments(*Record))
        walk(Argument, Path, At);
      return;
    }
    for (const CXXBaseSpecifier &Base : Record->bases())
      walk(Base.getType(), Path, Base.getBeginLoc());
    for (const FieldDecl *Field : Record->fields())
      if (!isVolatileOnPurpose(*Field))
        walk(Field->getType(), Path + "::" + nameOf(*Field),
             Field->getLocation());
  }

  static std::string nameOf(const FieldDecl &Field) {
    const std::string Name = Field.getNameAsString();
    return Name.empty() ? "(unnamed)" : Name;
  }

  static bool isVolatileOnPurpose(const FieldDecl &Field) {
    for (const auto *Mark : Field.specific_attrs<AnnotateAttr>())
      if (Mark->getAnnotation() == "holdfast.volatile_ok")
        return true;
    return false;
  }

  void report(QualType Type, const std::string &Path, SourceLocation At,
              const std::string &Reason) {
    const SourceLocation Use = UseFinder(Context, Root).found();
    if (At.isInvalid() && Use.isInvalid()) {
      Unplaced.push_back({Type, Path, Reason, RootAt});
      return;
    }
    if (!Places.insert(At.isValid() ? At : Use).second)
      return;
    say(Type, Path, Reason, At.isValid() ? At : Use);
    if (At.isValid())
      Diagnostics.Report(Use.isValid() ? Use : RootAt, Note)
          << ("'" + printed(Root) + "'");
  }

  void say(QualType Type, const std::string &Path, const std::string &Reason,
           SourceLocation At) {
    Types.insert(Type.getCanonicalType().getTypePtr());
    Diagnostics.Report(At, Error)
        << ("'" + Path + "'") << printed(Type) << Reason;
  }

  ASTContext &Context;
  DiagnosticsEngine &Diagnostics;
  const unsigned Error, Note;
  QualType Root;         // whose members are looked at
  SourceLocation RootAt; // where the headers ask for it
  llvm::SmallPtrSet<const CXXRecordDecl *, 32> Seen;

  // One error for one mistake:
  llvm::SmallSet<SourceLocation, 8> Places;
  llvm::SmallPtrSet<const Type *, 8> Types;
  struct Refused {
    QualType Type;
    std::string Path, Reason;
    SourceLocation At;
  };
  std::vector<Refused> Unplaced; // no line of the program's names them
};

template <class Decl>
const Decl *single(ASTContext &Context, const DeclContext &In,
                   const char *Name) {
  for (NamedDecl *Found : In.lookup(&Context.Idents.get(Name)))
    if (const auto *Right = dyn_cast<Decl>(Found))
      return Right;
  return nullptr;
}

/// hf::detail::stored, if the translation unit knows it.
const ClassTemplateDecl *findMarker(ASTContext &Context) {
  const DeclContext *In = Context.getTranslationUnitDecl();
  for (const char *Name : {"hf", "detail"}) {
    const auto *Space = single<NamespaceDecl>(Context, *In, Name);
    if (!Space)
      return nullptr;
    In = Space;
  }
  return single<ClassTemplateDecl>(Context, *In, "stored");
}

} // namespace

void checkStoredTypes(ASTContext &Context, DiagnosticsEngine &Diagnostics) {
  const ClassTemplateDecl *Stored = findMarker(Context);
  if (!Stored)
    return;
  TypeWalk Walk(Context, Diagnostics);
  for (const ClassTemplateSpecializationDecl *Each : Stored->specializations())
    Walk.look(Each->getTemplateArgs()[0].getAsType(),
              Each->getPointOfInstantiation());
  Walk.finish();
}

} // namespace holdfast
