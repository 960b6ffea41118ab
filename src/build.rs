//! Links the command at a fixed address (no PIE), on Linux.
//!
//! DataFusion's tables of functions contain a quarter of a million addresses, which would be relocated at
//! each start, dirtying 4 MiB of memory. Without that the command starts and answers in 12 ms instead of 16.5
//! (2026-11-23). The price is that the program's own code is not randomized in memory; heap, stack and
//! libraries still are.

fn main() {
    println!("cargo::rerun-if-changed=src/build.rs");
    let is = |what: &str, value: &str| std::env::var(what).is_ok_and(|found| found == value);
    if is("CARGO_CFG_TARGET_OS", "linux")
        && is("CARGO_CFG_TARGET_ENV", "gnu")
        && is("CARGO_CFG_TARGET_ARCH", "x86_64")
    {
        println!("cargo::rustc-link-arg-bins=-no-pie");
        // The bench starts itself in SQLite's place.
        println!("cargo::rustc-link-arg-benches=-no-pie");
    }
}
