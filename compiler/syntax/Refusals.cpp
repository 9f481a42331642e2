// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Refusals.h"

#include "clang/AST/ASTContext.h"
#include "clang/AST/DeclTemplate.h"
#include "llvm/ADT/StringMap.h"

using namespace clang;

namespace holdfast {
namespace {

constexpr const char Handle[] =
    "is a handle of this process: make it anew after each open, outside the "
    "pool";
constexpr const char View[] =
    "points to bytes of somebody else: store the bytes (hf::string, "
    "hf::vector), or a pointer into the pool";
constexpr const char Call[] =
    "keeps the address of code, which is another in every process: store an "
    "enum or a std::variant that says what to call";
constexpr const char Lock[] =
    "stays locked when its process dies: use hf::mutex or hf::shared_mutex";
constexpr const char Own[] =
    "keeps what is its own in volatile memory: store what to make it from, as "
    "in hf::string or hf::vector";
constexpr const char Table[] =
    "keeps the address of its category, which is another in every process: "
    "store the number alone";
constexpr const char Heap[] =
    "keeps what it points to in volatile memory: use hf::unique_ptr, or a "
    "pointer to an object of hf::make";

/// The names are those of declarations, without inline namespaces.
const llvm::StringMap<const char *> &named() {
  static const llvm::StringMap<const char *> Names = {
      {"std::unique_ptr", Heap},
      {"std::shared_ptr", Heap},
      {"std::weak_ptr", Heap},
      {"std::auto_ptr", Heap},
      {"std::any", Heap},
      {"std::filesystem::path", Own},
      {"std::filesystem::directory_entry", Own},
      {"std::basic_regex", Own},
      {"std::valarray", Own},
      {"std::error_code", Table},
      {"std::error_condition", Table},
      {"std::function", Call},
      {"std::move_only_function", Call},
      {"std::coroutine_handle", Call},
      {"std::type_index", Call},
      {"std::mutex", Lock},
      {"std::recursive_mutex", Lock},
      {"std::timed_mutex", Lock},
      {"std::recursive_timed_mutex", Lock},
      {"std::shared_mutex", Lock},
      {"std::shared_timed_mutex", Lock},
      {"pthread_mutex_t", Lock},
      {"pthread_rwlock_t", Lock},
      {"mtx_t", Lock},
      {"std::condition_variable", Handle},
      {"std::condition_variable_any", Handle},
      {"std::counting_semaphore", Handle},
      {"std::barrier", Handle},
      {"std::latch", Handle},
      {"std::once_flag", Handle},
      {"std::thread", Handle},
      {"std::jthread", Handle},
      {"std::stop_token", Handle},
      {"std::stop_source", Handle},
      {"std::future", Handle},
      {"std::shared_future", Handle},
      {"std::promise", Handle},
      {"std::packaged_task", Handle},
      {"std::exception_ptr", Handle},
      {"std::__exception_ptr::exception_ptr", Handle},
      {"std::locale", Handle},
      {"std::random_device", Handle},
      {"std::filesystem::directory_iterator", Handle},
      {"std::filesystem::recursive_directory_iterator", Handle},
      {"pthread_cond_t", Handle},
      {"cnd_t", Handle},
      {"pthread_barrier_t", Handle},
      {"sem_t", Handle},
      {"_IO_FILE", Handle},
      {"__dirstream", Handle},
      {"hf::pool", Handle},
      {"std::basic_string_view", View},
      {"std::span", View},
      {"std::reference_wrapper", View},
      {"std::initializer_list", View},
  };
  return Names;
}

std::string nameOf(const NamedDecl &Decl) {
  PrintingPolicy Policy(Decl.getASTContext().getLangOpts());
  Policy.SuppressUnwrittenScope = true; // std::__cxx11, std::__1
  Policy.SuppressInlineNamespace = true;
  std::string Name;
  llvm::raw_string_ostream Out(Name);
  Decl.printQualifiedName(Out, Policy);
  return Name;
}

/// 'pthread_mutex_t' of a union without a name of its own.
std::string nameOf(const TagDecl &Decl) {
  if (const TypedefNameDecl *Name = Decl.getTypedefNameForAnonDecl())
    return Name->getNameAsString();
  return nameOf(static_cast<const NamedDecl &>(Decl));
}

const ClassTemplateSpecializationDecl *specialization(QualType Type) {
  return dyn_cast_or_null<ClassTemplateSpecializationDecl>(
      Type->getAsCXXRecordDecl());
}

bool isVolatileAllocator(QualType Type) {
  const ClassTemplateSpecializationDecl *Allocator = specialization(Type);
  if (!Allocator)
    return false;
  const std::string Name = nameOf(*Allocator);
  return Name == "std::allocator" ||
         Name == "std::pmr::polymorphic_allocator" ||
         Name == "boost::container::new_allocator";
}

/// What has an allocator, and that is not the pool's.
std::optional<std::string> ofVolatileMemory(const CXXRecordDecl &Record) {
  if (llvm::none_of(templateArguments(Record), isVolatileAllocator))
    return std::nullopt;
  static const llvm::StringMap<const char *> Ours = {
      {"std::basic_string", "hf::string"},
      {"std::vector", "hf::vector"},
      {"std::deque", "hf::deque"},
      {"std::list", "hf::list"},
      {"std::map", "hf::map"},
      {"std::set", "hf::set"},
      {"std::unordered_map", "hf::unordered_map"},
      {"std::unordered_set", "hf::unordered_set"}};
  const auto Same = Ours.find(nameOf(Record));
  std::string Reason = "keeps its elements in volatile memory: ";
  if (Same == Ours.end())
    return Reason + "give it hf::allocator";
  return Reason + "use " + Same->second + " (<holdfast/containers.hpp>)";
}

/// A std::unique_ptr with a deleter of somebody's own knows what it points to.
bool hasOwnDeleter(const CXXRecordDecl &Record) {
  const auto *Pointer = dyn_cast<ClassTemplateSpecializationDecl>(&Record);
  if (!Pointer || Pointer->getTemplateArgs().size() != 2)
    return false;
  const ClassTemplateSpecializationDecl *Deleter =
      specialization(Pointer->getTemplateArgs()[1].getAsType());
  return !Deleter || nameOf(*Deleter) != "std::default_delete";
}

std::optional<std::string> ofRecord(const CXXRecordDecl &Record) {
  const std::string Name = nameOf(Record);
  const auto Known = named().find(Name);
  if (Known != named().end() &&
      !(Name == "std::unique_ptr" && hasOwnDeleter(Record)))
    return Known->second;
  if (auto Reason = ofVolatileMemory(Record))
    return Reason;
  if (Record.hasDefinition() && Record.isDynamicClass())
    return "has virtual functions or bases, and so the address of a table, "
           "which is another in every process: keep alternatives in a "
           "std::variant";
  return std::nullopt;
}

} // namespace

static void addTypes(llvm::ArrayRef<TemplateArgument> From,
                     llvm::SmallVectorImpl<QualType> &To) {
  for (const TemplateArgument &Argument : From)
    if (Argument.getKind() == TemplateArgument::Type)
      To.push_back(Argument.getAsType());
    else if (Argument.getKind() == TemplateArgument::Pack)
      addTypes(Argument.getPackAsArray(), To);
}

llvm::SmallVector<QualType, 4> templateArguments(const CXXRecordDecl &Record) {
  llvm::SmallVector<QualType, 4> Found;
  if (const auto *Template = dyn_cast<ClassTemplateSpecializationDecl>(&Record))
    addTypes(Template->getTemplateArgs().asArray(), Found);
  return Found;
}

bool isOfLibrary(const CXXRecordDecl &Record) {
  return Record.isInStdNamespace();
}

std::optional<std::string> refusal(QualType Type) {
  if (Type->isReferenceType())
    return "cannot be set anew and points to what may be gone: use a pointer "
           "into the pool";
  if (Type->isMemberFunctionPointerType() || Type->isFunctionPointerType() ||
      Type->isBlockPointerType())
    return Call;
  if (Type->isPointerType()) {
    // What cannot live in a pool is elsewhere.
    if (const CXXRecordDecl *To = Type->getPointeeCXXRecordDecl())
      if (auto Reason = ofRecord(*To))
        return "leads to volatile memory, as " +
               Type->getPointeeType().getUnqualifiedType().getAsString(
                   To->getASTContext().getPrintingPolicy()) +
               " " + *Reason;
    return std::nullopt;
  }
  if (const CXXRecordDecl *Record = Type->getAsCXXRecordDecl())
    return ofRecord(*Record);
  return std::nullopt;
}

} // namespace holdfast
