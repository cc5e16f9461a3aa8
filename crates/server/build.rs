//! Names the core that this program is built from: see `src/store/program.rs` for what that is good for.

use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() {
    let core = Path::new(&env::var("CARGO_MANIFEST_DIR").expect("cargo says where")).join("../core/src");
    println!("cargo:rerun-if-changed={}", core.display());
    let mut files = Vec::new();
    collect(&core, &mut files);
    files.sort();
    // FNV-1a, 64 bit: it must tell versions apart, not resist anybody.
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for file in &files {
        let name = file.strip_prefix(&core).expect("inside").to_string_lossy().into_owned();
        for byte in name.bytes().chain(fs::read(file).expect("a source file")) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
    println!("cargo:rustc-env=STIPEND_CORE={hash:016x}");
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("the core's sources").map(|entry| entry.expect("an entry")) {
        match entry.file_type().expect("a type").is_dir() {
            true => collect(&entry.path(), files),
            false => files.push(entry.path()),
        }
    }
}
