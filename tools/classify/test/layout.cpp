// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Classes whose objects are no block of bytes: nothing of them can be deferred.
#include <array>
#include <string>

class keeps_pointer {
public:
    //! instant: member next_ holds an address (int *) @pointer
    void set(int n) noexcept { n_ = n; }

private:
    int n_ = 0;
    int* next_ = nullptr; //@pointer
};

class keeps_reference {
public:
    explicit keeps_reference(int& to) : alias_(to) {}
    //! instant: member alias_ holds an address (int &) @reference
    void set(int n) noexcept { alias_ = n; }

private:
    int& alias_; //@reference
};

class inherits_pointer : public keeps_pointer {
public:
    //! instant: member next_ holds an address (int *) @pointer
    void more() noexcept { ++m_; }

private:
    int m_ = 0;
};

class keeps_text {
public:
    //! instant: member text_ holds an address
    void set(int n) noexcept { n_ = n; }

private:
    int n_ = 0;
    std::string text_;
};

class is_virtual {
public:
    //! instant: is virtual
    //! instant: the class has virtual functions or bases
    virtual void set(int n) noexcept { n_ = n; }

private:
    int n_ = 0;
};

class copies_itself {
public:
    copies_itself() = default;
    copies_itself(const copies_itself& o) : n_(o.n_ + 1) {}
    //! instant: the class is not trivially copyable
    void set(int n) noexcept { n_ = n; }

private:
    int n_ = 0;
};

/// Its versions are classified one by one; members that nobody calls are looked at, too.
template <class T, int N> class shelf {
public:
    //! deferrable
    void put(T value) noexcept { items_[count_++ % N] = value; }
    //! deferrable
    template <class Other> void put_all(Other value) noexcept {
        items_.fill(static_cast<T>(value));
    }

private:
    std::array<T, N> items_{};
    int count_ = 0;
};
void uses(shelf<int, 4>& s) { s.put_all(2.5); }
