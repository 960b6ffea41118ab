//! Links the command where it is to be loaded (no PIE), on Linux.
//!
//! DataFusion's tables of functions have a quarter of a million addresses, which the system would write into 4 MiB of
//! the process each time it starts. Without them the command starts and answers in 12 ms instead of 16.5 (2026-11-23).
//! What is given up is that the program's own code lies elsewhere in each run; heap, stack and libraries still do.

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
