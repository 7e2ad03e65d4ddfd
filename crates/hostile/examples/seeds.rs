//! Writes the seeds of real traffic where the fuzzers look for them: `cargo run -p kohort-hostile --example seeds -- fuzz/corpus`.

use kohort_hostile::TARGETS;
use kohort_hostile::traffic::Traffic;
use std::error::Error;
use std::fs;
use std::path::PathBuf;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args_os()
        .nth(1)
        .ok_or("expected the folder to write to")?;
    let traffic = Traffic::record().await?;
    for target in TARGETS {
        let folder = PathBuf::from(&folder).join(target.name);
        fs::create_dir_all(&folder)?;
        let seeds = traffic.seeds(target.name);
        for (number, seed) in seeds.iter().enumerate() {
            fs::write(folder.join(format!("seed-{number:03}")), seed)?;
        }
        println!("{}: {} seeds", target.name, seeds.len());
    }
    Ok(())
}
