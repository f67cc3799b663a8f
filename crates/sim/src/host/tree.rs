//! The files of a machine, in memory: folders and plain files by their full path, with their owner.

use std::collections::BTreeMap;
use std::ops::Bound;

use aws_lc_rs::digest;

#[derive(Clone, Debug)]
pub struct Node {
    pub owner: String,
    /// `None` is a folder.
    pub bytes: Option<Vec<u8>>,
    /// A new file with the same name has a new number.
    pub inode: u64,
}

#[derive(Debug, Default)]
pub struct Tree {
    nodes: BTreeMap<String, Node>,
    made: u64,
}

impl Tree {
    pub fn get(&self, path: &str) -> Option<&Node> {
        self.nodes.get(path)
    }

    pub fn file(&self, path: &str) -> Option<&[u8]> {
        self.nodes.get(path)?.bytes.as_deref()
    }

    pub fn text(&self, path: &str) -> Option<&str> {
        str::from_utf8(self.file(path)?).ok()
    }

    pub fn is_folder(&self, path: &str) -> bool {
        path == "/" || self.nodes.get(path).is_some_and(|node| node.bytes.is_none())
    }

    pub fn owner(&self, path: &str) -> &str {
        self.nodes.get(path).map_or("root", |node| &node.owner)
    }

    /// Creates a folder and its parents.
    pub fn folder(&mut self, path: &str, owner: &str) {
        for (at, _) in path.match_indices('/').skip(1).chain([(path.len(), "")]) {
            if !self.nodes.contains_key(&path[..at]) {
                self.put(&path[..at], None, owner);
            }
        }
    }

    /// Writes a file. An existing one is replaced by a new file with the same owner.
    pub fn write(&mut self, path: &str, bytes: impl Into<Vec<u8>>, owner: &str) {
        let owner = self.nodes.get(path).map_or_else(|| owner.to_owned(), |node| node.owner.clone());
        self.put(path, Some(bytes.into()), &owner);
    }

    /// Appends to a file; its inode stays the same.
    pub fn append(&mut self, path: &str, bytes: &[u8], owner: &str) {
        match self.nodes.get_mut(path).and_then(|node| node.bytes.as_mut()) {
            Some(there) => there.extend_from_slice(bytes),
            None => self.put(path, Some(bytes.to_vec()), owner),
        }
    }

    fn put(&mut self, path: &str, bytes: Option<Vec<u8>>, owner: &str) {
        self.made += 1;
        let node = Node { owner: owner.to_owned(), bytes, inode: 1000 + self.made };
        self.nodes.insert(path.to_owned(), node);
    }

    /// A path and everything below it.
    pub fn below(&self, path: &str) -> Vec<String> {
        let inside = format!("{path}/");
        let from = (Bound::Included(path), Bound::Unbounded);
        let all = self.nodes.range::<str, _>(from).map(|(name, _)| name);
        all.take_while(|name| name.starts_with(path))
            .filter(|name| *name == path || name.starts_with(&inside))
            .cloned()
            .collect()
    }

    pub fn remove(&mut self, path: &str) {
        for name in self.below(path) {
            self.nodes.remove(&name);
        }
    }

    pub fn rename(&mut self, from: &str, to: &str) {
        self.remove(to);
        for name in self.below(from) {
            if let Some(node) = self.nodes.remove(&name) {
                self.nodes.insert(format!("{to}{}", &name[from.len()..]), node);
            }
        }
    }

    pub fn copy(&mut self, from: &str, to: &str) {
        for name in self.below(from) {
            if let Some(node) = self.nodes.get(&name).cloned() {
                self.put(&format!("{to}{}", &name[from.len()..]), node.bytes, &node.owner);
            }
        }
    }

    /// The paths with this prefix, in order.
    pub fn beginning(&self, prefix: &str) -> Vec<String> {
        let from = (Bound::Included(prefix), Bound::Unbounded);
        self.nodes
            .range::<str, _>(from)
            .map(|(name, _)| name)
            .take_while(|name| name.starts_with(prefix))
            .cloned()
            .collect()
    }
}

pub fn sha256(bytes: &[u8]) -> String {
    let sum = digest::digest(&digest::SHA256, bytes);
    sum.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

pub fn parent(path: &str) -> &str {
    match path.rsplit_once('/') {
        Some(("", _)) | None => "/",
        Some((folder, _)) => folder,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_folders_move_and_neighbours_of_a_like_name_stay() {
        let mut tree = Tree::default();
        tree.folder("/srv/1/a", "x");
        tree.write("/srv/1/a/f", "text", "x");
        tree.write("/srv/1.archive", "", "root");
        tree.write("/srv/10", "", "root");
        tree.rename("/srv/1", "/srv/kept");
        assert_eq!(tree.text("/srv/kept/a/f"), Some("text"));
        assert!(tree.get("/srv/1").is_none() && tree.get("/srv/10").is_some() && tree.get("/srv/1.archive").is_some());
        tree.copy("/srv/kept", "/srv/1");
        tree.remove("/srv/kept");
        assert_eq!((tree.text("/srv/1/a/f"), tree.owner("/srv/1/a")), (Some("text"), "x"));
        assert!(tree.is_folder("/srv/1/a") && !tree.is_folder("/srv/1/a/f"));
    }
}
