// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// TPC-C's transaction StockLevel with its accesses to records all reads, or all writes, on a
// persistent object beside Berkeley DB. SIMPO §4.4, Figs. 23 and 24
//
// One warehouse: ten districts, each with the last 20 orders of ten lines, and the stock of 10 000
// items. A transaction concerns one district: its next order's number, its 200 order lines, and the
// stock of their items, 401 records in all. It reads them to count the items that are too few, or
// writes each anew. As in the paper, get is an instant and put a deferrable function. There an
// object stands behind each of Berkeley DB's tables; here one object replaces them.
//
// native   the records in an array under a lock, which each get and put takes
// simpo    the same as a persistent object; a transaction of puts ends with sync()
// bdb      Berkeley DB's hash in memory, without transactions: nothing survives
// bdb-simpo  the same, and each put on a persistent object, too, from which an open fills the table again
// bdb-ft   with its own, one each: logged to the kernel, not to the disk, as mode process; or to it, as the others
#pragma once

#include "driver.hpp"

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <db.h>
#include <string>
#include <utility>
#include <vector>

namespace hf::bench {

/// A substitute for a record's columns.
struct stock_record {
    std::array<std::uint64_t, 4> columns{};
};

class stock_table {
public:
    static constexpr simpo::class_name simpo_class{"stock_table", 1};
    static constexpr std::uint32_t districts = 10, lines = 200, items = 10'000;
    static constexpr std::uint32_t line_records = districts,
                                   stock_records = districts + districts * lines;
    static constexpr std::uint32_t records = stock_records + items;

    stock_record get(std::uint32_t record) const noexcept { return all_[record % records]; }
    void put(std::uint32_t record, stock_record to) noexcept { all_[record % records] = to; }
    std::uint64_t fingerprint() const noexcept {
        std::uint64_t hash = 0;
        for (const stock_record& each : all_)
            for (const std::uint64_t c : each.columns) hash = mixed(hash, c);
        return hash;
    }

private:
    std::array<stock_record, records> all_{};
};

/// Any of them: get(record), put(record, to), commit().
template <class Store> std::uint64_t stock_transaction(Store& on, bool puts, std::uint64_t number) {
    const auto district = static_cast<std::uint32_t>(mixed(1, number) % stock_table::districts);
    std::uint64_t low = 0;
    const auto touch = [&](std::uint32_t record, std::uint64_t value) {
        if (puts) return on.put(record, {{value, number, record, value ^ number}}), value;
        return on.get(record).columns[0];
    };
    (void)touch(district, number);
    for (std::uint32_t line = 0; line < stock_table::lines; ++line) {
        const std::uint32_t at = stock_table::line_records + district * stock_table::lines + line;
        const std::uint64_t item = puts ? mixed(number, line) : touch(at, 0);
        if (puts) (void)touch(at, item);
        low += touch(stock_table::stock_records +
                         static_cast<std::uint32_t>(item % stock_table::items),
                     item % 100) < 15;
    }
    on.commit();
    return low;
}

template <class Object> class stock_of_object {
public:
    explicit stock_of_object(Object of) : of_(std::move(of)) {}
    stock_record get(std::uint32_t record) { return of_.template call<&stock_table::get>(record); }
    void put(std::uint32_t record, const stock_record& to) {
        of_.template defer<&stock_table::put>(record, to);
    }
    void commit() { of_.sync(); }

private:
    Object of_;
};

class stock_of_bdb {
public:
    /// 'sync': waits for the disk. Without transactions: in memory, where nothing of it survives.
    stock_of_bdb(const app_settings& how, bool transactions, bool sync)
        : file_(how.directory, fmt::format("simpo-bdb-{}", made_++)), transactions_(transactions) {
        file_.make_directory();
        require(db_env_create(&environment_, 0));
        require(environment_->set_cachesize(environment_, 0, 64U << 20, 1));
        u_int32_t flags = DB_CREATE | DB_INIT_MPOOL | DB_PRIVATE;
        if (transactions) flags |= DB_INIT_TXN | DB_INIT_LOG | DB_INIT_LOCK;
        if (transactions) require(environment_->set_lg_bsize(environment_, 16U << 20));
        if (transactions) require(environment_->set_lg_max(environment_, 256U << 20));
        if (transactions && !sync)
            require(environment_->set_flags(environment_, DB_TXN_WRITE_NOSYNC, 1));
        if (transactions) require(environment_->set_lk_max_locks(environment_, 10'000));
        if (transactions) require(environment_->set_lk_max_objects(environment_, 10'000));
        require(environment_->open(environment_, file_.path().c_str(), flags, 0600));
        require(db_create(&table_, environment_, 0));
        require(table_->set_h_nelem(table_, stock_table::records));
        require(table_->open(table_, nullptr, transactions ? "stock" : nullptr, nullptr, DB_HASH,
                             DB_CREATE | (transactions ? DB_AUTO_COMMIT : 0), 0600));
        for (std::uint32_t r = 0; r < stock_table::records; ++r) {
            put(r, {});
            if (r % 1000 == 0) commit();
        }
        commit();
    }
    ~stock_of_bdb() {
        if (open_ != nullptr) open_->abort(open_);
        table_->close(table_, DB_NOSYNC);
        environment_->close(environment_, 0);
    }
    stock_of_bdb(const stock_of_bdb&) = delete;

    stock_record get(std::uint32_t record) {
        stock_record out;
        DBT key = dbt(&record, sizeof record), value = dbt(&out, sizeof out);
        value.flags = DB_DBT_USERMEM;
        require(table_->get(table_, begun(), &key, &value, 0));
        return out;
    }
    void put(std::uint32_t record, stock_record to) {
        DBT key = dbt(&record, sizeof record), value = dbt(&to, sizeof to);
        require(table_->put(table_, begun(), &key, &value, 0));
    }
    void commit() {
        DB_TXN* const ending = std::exchange(open_, nullptr);
        if (ending != nullptr) require(ending->commit(ending, 0));
    }

private:
    static void require(int code) {
        if (code != 0) give_up(std::string("bdb: ") + db_strerror(code));
    }
    static DBT dbt(void* data, std::size_t bytes) {
        DBT made{};
        made.data = data;
        made.size = made.ulen = static_cast<u_int32_t>(bytes);
        return made;
    }
    DB_TXN* begun() {
        if (transactions_ && open_ == nullptr)
            require(environment_->txn_begin(environment_, nullptr, &open_, 0));
        return open_;
    }

    inline static unsigned made_ = 0; // each has a folder of its own
    temporary_file file_;
    bool transactions_;
    DB_ENV* environment_ = nullptr;
    DB* table_ = nullptr;
    DB_TXN* open_ = nullptr; // the transaction
};

/// What the paper makes of Berkeley DB: its tables in memory, and persistent objects for what is in
/// them. The calls of a table are no calls of an object: it is full of pointers and locks.
template <class Object> class stock_of_both {
public:
    stock_of_both(const app_settings& how, Object of)
        : table_(how, false, false), of_(std::move(of)) {}
    stock_record get(std::uint32_t record) { return table_.get(record); }
    void put(std::uint32_t record, const stock_record& to) {
        of_.template defer<&stock_table::put>(record, to);
        table_.put(record, to);
    }
    void commit() { of_.sync(); }
    /// Whether an open would fill the table with what is in it.
    bool is_whole() {
        for (std::uint32_t r = 0; r < stock_table::records; ++r)
            if (table_.get(r).columns != of_.template call<&stock_table::get>(r).columns)
                return false;
        return true;
    }

private:
    stock_of_bdb table_;
    Object of_;
};

/// Seconds of so many transactions, and what the last of them counted.
template <class Store>
double stock_seconds(Store& on, bool puts, std::uint64_t transactions, std::uint64_t& low) {
    for (std::uint64_t n = 0; n < 20; ++n) (void)stock_transaction(on, true, n); // the same for all
    const spent took = time_of([&] {
        low = 0;
        for (std::uint64_t n = 0; n < transactions; ++n)
            low += stock_transaction(on, puts, 1000 + n);
    });
    return took.cpu_seconds; // another process on the processor is nobody's
}

/// The five in turns, round by round; throughput over that of native, medians.
inline nlohmann::ordered_json run_stock_level(const app_settings& how) {
    const std::uint64_t transactions = how.size == 0 ? 400 : how.size;
    nlohmann::ordered_json out{{"name", "stock_level"},          {"mode", how.mode},
                               {"emulated", how.mode == "pmem"}, {"rounds", how.rounds},
                               {"steps", transactions},          {"time", "of processor"}};
    for (const bool puts : {false, true}) {
        std::vector<double> ratio[4], native;
        for (unsigned round = 0; round < how.rounds; ++round) {
            std::uint64_t low = 0, expected = 0;
            stock_of_object plain(native_object<stock_table>(std::make_unique<stock_table>()));
            native.push_back(stock_seconds(plain, puts, transactions, expected));
            const auto compare = [&](auto& store, std::vector<double>& to) {
                to.push_back(native.back() / stock_seconds(store, puts, transactions, low));
                if (low != expected) give_up("a store counted other stocks");
            };
            const temporary_file file(how.directory, "simpo-app");
            pool in = must(pool::open(file.path(), app_pool(how)));
            stock_of_object ours(must(simpo::object<stock_table>::create(
                in, "it", simpo::object_options{how.log_bytes})));
            compare(ours, ratio[0]);
            stock_of_bdb memory(how, false, false), kept(how, true, how.mode != "process");
            compare(memory, ratio[1]);
            compare(kept, ratio[2]);
            stock_of_both both(how, must(simpo::object<stock_table>::create(
                                        in, "behind", simpo::object_options{how.log_bytes})));
            compare(both, ratio[3]);
            if (!both.is_whole()) give_up("the object behind the table has other records");
        }
        nlohmann::ordered_json& to = out[puts ? "put" : "get"];
        to["native_us_a_transaction"] = median(native) / static_cast<double>(transactions) * 1e6;
        const char* const names[] = {"simpo", "bdb", "bdb_ft", "bdb_simpo"};
        for (int i = 0; i < 4; ++i) to[names[i]] = median(ratio[i]);
        to["bdb_ft_over_bdb"] = to["bdb_ft"].get<double>() / to["bdb"].get<double>();
        to["bdb_simpo_over_bdb"] = to["bdb_simpo"].get<double>() / to["bdb"].get<double>();
        to["simpo_over_bdb_ft"] = to["simpo"].get<double>() / to["bdb_ft"].get<double>();
    }
    return out;
}

} // namespace hf::bench
