//! Symbols and needs of a shared library, read from its file piece by piece: libraries of GPU programs have gigabytes.

use std::fs::File;
use std::path::Path;

use object::elf::{self, FileHeader64};
use object::read::elf::{ElfFile64, SectionHeader as _, SectionTable, Sym as _};
use object::{Architecture, Endianness, Object as _, ReadCache};
use rpd_spool::regular_file::{self, Links};

/// Facts about a library.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Library {
    /// Name that it has for libraries that need it.
    pub(crate) soname: Option<String>,
    /// Names of the libraries that it needs.
    pub(crate) needed: Vec<String>,
    /// Directories in which these are looked for first.
    pub(crate) search: Vec<String>,
    /// Versions that it needs: file, version.
    pub(crate) requires: Vec<(String, String)>,
    /// Versions of symbols that it has.
    pub(crate) defines: Vec<String>,
    /// Addresses of exported functions, before the library is loaded somewhere, by the names that were asked for.
    exports: Vec<(&'static str, u64)>,
    /// Address of the first segment, before the library is loaded somewhere.
    pub(crate) first: u64,
    /// Id of the build, if it has one.
    pub(crate) build_id: Option<Vec<u8>>,
}

type Cache = ReadCache<File>;
type Sections<'a> = SectionTable<'a, FileHeader64<Endianness>, &'a Cache>;

/// The failure for a part of the file that is damaged.
fn damaged(error: object::Error) -> String {
    error.to_string()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

impl Library {
    /// Reads a library. `wanted` are the functions whose addresses are looked up.
    ///
    /// # Errors
    /// Why it is no library that a process on this machine can load.
    pub(crate) fn read(path: &Path, wanted: &[&'static str]) -> Result<Library, String> {
        let (file, _) =
            regular_file::open(path, Links::Refuse).map_err(|error| error.to_string())?;
        let cache = ReadCache::new(file);
        let file = ElfFile64::<Endianness, _>::parse(&cache).map_err(damaged)?;
        if file.architecture() != Architecture::X86_64 {
            return Err(format!(
                "it is for another processor ({:?})",
                file.architecture()
            ));
        }
        let mut library = Library {
            first: file
                .elf_program_headers()
                .iter()
                .find(|header| header.p_type.get(file.endian()) == elf::PT_LOAD)
                .map_or(0, |header| header.p_vaddr.get(file.endian())),
            build_id: file.build_id().ok().flatten().map(<[u8]>::to_vec),
            ..Library::default()
        };
        let sections = file.elf_section_table();
        library
            .read_exports(&file, &cache, wanted)
            .map_err(damaged)?;
        library
            .read_needs(file.endian(), &cache, sections)
            .map_err(damaged)?;
        library
            .read_versions(file.endian(), &cache, sections)
            .map_err(damaged)?;
        Ok(library)
    }

    fn read_exports<'a>(
        &mut self,
        file: &ElfFile64<'a, Endianness, &'a Cache>,
        data: &'a Cache,
        wanted: &[&'static str],
    ) -> Result<(), object::Error> {
        let table = file.elf_dynamic_symbol_table();
        if wanted.is_empty() || table.is_empty() {
            return Ok(());
        }
        let endian = file.endian();
        let names = file.elf_section_table().section(table.string_section())?;
        // All at once: a library has tens of thousands of names, and each would be read by itself.
        let names: &[u8] = names.data(endian, data)?;
        for symbol in table.symbols().iter().filter(|it| !it.is_undefined(endian)) {
            let name = names
                .get(symbol.st_name(endian) as usize..)
                .unwrap_or_default();
            let is_wanted = |known: &&&str| {
                name.strip_prefix(known.as_bytes())
                    .is_some_and(|rest| rest.first() == Some(&0))
            };
            if let Some(known) = wanted.iter().find(is_wanted) {
                self.exports.push((known, symbol.st_value(endian)));
            }
        }
        Ok(())
    }

    fn read_needs<'a>(
        &mut self,
        endian: Endianness,
        data: &'a Cache,
        sections: &Sections<'a>,
    ) -> Result<(), object::Error> {
        let table = sections.dynamic_table(endian, data)?;
        for entry in &table {
            let value = || table.string(entry).map(text);
            let directories = |list: String| list.split(':').map(str::to_owned).collect::<Vec<_>>();
            match entry.tag {
                elf::DT_NEEDED => self.needed.push(value()?),
                elf::DT_SONAME => self.soname = Some(value()?),
                elf::DT_RUNPATH => self.search = directories(value()?),
                // Only where there is no newer entry.
                elf::DT_RPATH if self.search.is_empty() => self.search = directories(value()?),
                // The other entries are for the loader alone.
                _ => {}
            }
        }
        Ok(())
    }

    fn read_versions<'a>(
        &mut self,
        endian: Endianness,
        data: &'a Cache,
        sections: &Sections<'a>,
    ) -> Result<(), object::Error> {
        if let Some((mut needs, link)) = sections.gnu_verneed(endian, data)? {
            let strings = sections.strings(endian, data, link)?;
            while let Some((need, mut versions)) = needs.next()? {
                let file = text(need.file(endian, strings)?);
                while let Some(version) = versions.next()? {
                    // A weak need may stay open.
                    if !version.vna_flags.get(endian).contains(elf::VER_FLG_WEAK) {
                        let version = text(version.name(endian, strings)?);
                        self.requires.push((file.clone(), version));
                    }
                }
            }
        }
        if let Some((mut definitions, link)) = sections.gnu_verdef(endian, data)? {
            let strings = sections.strings(endian, data, link)?;
            while let Some((_, mut names)) = definitions.next()? {
                if let Some(name) = names.next()? {
                    self.defines.push(text(name.name(endian, strings)?));
                }
            }
        }
        Ok(())
    }

    /// Address of a function that was asked for, before the library is loaded somewhere.
    pub(crate) fn export(&self, name: &str) -> Option<u64> {
        let found = self.exports.iter().find(|(known, _)| *known == name);
        found.map(|(_, address)| *address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn library_has_its_name_needs_versions_and_exports() {
        let maps = std::fs::read_to_string("/proc/self/maps").expect("a list");
        let libc = maps
            .lines()
            .filter_map(|line| line.split_whitespace().nth(5))
            .find(|path| path.contains("libc.so") || path.contains("libc-"))
            .expect("this program has a C library");
        let library =
            Library::read(Path::new(libc), &["getpid", "no_such_function"]).expect("a library");
        assert!(library.soname.is_some());
        assert!(library.export("getpid").is_some_and(|address| address > 0));
        assert_eq!(library.export("no_such_function"), None);
        assert!(library.defines.iter().any(|name| name == "GLIBC_2.2.5"));
        let own = std::env::current_exe().expect("a path");
        let own = Library::read(&own, &[]).expect("a program");
        assert!(own.needed.iter().any(|name| name.starts_with("libc.so")));
        assert!(
            own.requires
                .iter()
                .any(|(_, version)| version.starts_with("GLIBC_"))
        );
    }

    #[test]
    fn library_that_is_no_regular_elf_file_is_refused() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("lib.so");
        for content in [&b""[..], b"\x7fELF", b"#!/bin/sh"] {
            std::fs::write(&path, content).expect("written");
            assert!(Library::read(&path, &[]).is_err());
        }
        assert!(Library::read(directory.path(), &[]).is_err());
        assert!(Library::read(Path::new("/dev/null"), &[]).is_err());
    }
}
