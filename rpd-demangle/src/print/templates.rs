//! Templates, their parameters, and packs.

use super::{MAX_DEPTH, Printer, Refused, Result, Scope};
use crate::tree::{Node, NodeId};

/// The index of a pack's element that stands for the whole pack.
pub(super) const WHOLE_PACK: i32 = -1;

impl Printer<'_, '_> {
    /// Makes parameters refer to the arguments of `template`.
    pub(super) fn enter(&mut self, template: NodeId) {
        self.scopes.push(Scope {
            template,
            outer: self.scope,
        });
        self.scope = Some(self.scopes.len() - 1);
    }

    pub(super) fn template(&mut self, id: NodeId, name: NodeId, arguments: NodeId) -> Result {
        let template = self.template.replace(id);
        // What modifies the template does not modify its arguments.
        let innermost = self.innermost.take();
        self.node(name)?;
        self.template_arguments(arguments)?;
        self.innermost = innermost;
        self.template = template;
        Ok(())
    }

    /// Writes arguments in brackets, such that no two brackets make an operator.
    fn template_arguments(&mut self, arguments: NodeId) -> Result {
        self.text(if self.last == b'<' { b" <" } else { b"<" })?;
        self.node(arguments)?;
        self.text(if self.last == b'>' { b" >" } else { b">" })
    }

    /// Writes the type of a conversion operator. The parameters of the operator's own template are known in it, but not
    /// in its arguments, which belong to that template.
    pub(super) fn conversion(&mut self, ty: NodeId) -> Result {
        let scope = self.scope;
        if let Some(template) = self.template {
            self.enter(template);
        }
        if let Node::Template(name, arguments) = self.get(ty) {
            self.node(name)?;
            self.scope = scope;
            self.template_arguments(arguments)
        } else {
            self.node(ty)?;
            self.scope = scope;
            Ok(())
        }
    }

    /// Writes the argument of a template parameter.
    pub(super) fn template_param(&mut self, number: i32) -> Result {
        if self.lambdas > 0 {
            // Parameters of a generic lambda.
            self.text(b"auto:")?;
            return self.number(i64::from(number) + 1);
        }
        let argument = self.argument(number)?;
        // The argument may refer to parameters of a template outside.
        let scope = self.scope;
        self.scope = scope.and_then(|index| self.scopes[index].outer);
        self.node(argument)?;
        self.scope = scope;
        Ok(())
    }

    /// The argument of a parameter; the current element if the argument is a pack.
    pub(super) fn argument(&mut self, number: i32) -> Result<NodeId> {
        let argument = self.argument_or_pack(number)?.ok_or(Refused)?;
        match self.get(argument) {
            Node::TemplateArguments(..) => self.element(argument, self.pack_index)?.ok_or(Refused),
            _ => Ok(argument),
        }
    }

    fn argument_or_pack(&mut self, number: i32) -> Result<Option<NodeId>> {
        let scope = self.scope.ok_or(Refused)?;
        match self.get(self.scopes[scope].template) {
            Node::Template(_, arguments) => self.element(arguments, number),
            _ => Err(Refused),
        }
    }

    /// An element of a list; fails if the list is shorter.
    fn element(&mut self, list: NodeId, index: i32) -> Result<Option<NodeId>> {
        if index == WHOLE_PACK {
            return Ok(Some(list));
        }
        let mut next = Some(list);
        for _ in 0..index {
            self.step()?;
            let Some(Node::TemplateArguments(_, rest)) = next.map(|list| self.get(list)) else {
                return Ok(None);
            };
            next = rest;
        }
        Ok(match next.map(|list| self.get(list)) {
            Some(Node::TemplateArguments(first, _)) => first,
            _ => None,
        })
    }

    /// Gives the parameter `inner` of the reference `id` the meaning that it had when it was written first. Later it
    /// may be written through a substitution, where other templates are in effect.
    pub(super) fn enter_saved_scope(&mut self, id: NodeId, inner: NodeId) {
        let saved = self.saved_scopes.iter().find(|(node, _)| *node == inner);
        let Some(&(_, scope)) = saved else {
            self.saved_scopes.push((inner, self.scope));
            return;
        };
        let outside = &self.path[..self.path.len() - 1];
        let within_itself = outside.contains(&id) || self.path.contains(&inner);
        if !within_itself {
            self.scope = scope;
        }
    }

    /// Writes a pattern for each element of the first pack in it.
    pub(super) fn expansion(&mut self, pattern: NodeId) -> Result {
        let pack = self.find_pack(pattern)?;
        let Some(pack) = pack else {
            // Only packs of function parameters, whose length is not known.
            self.operand(pattern)?;
            return self.text(b"...");
        };
        let length = self.pack_length(pack)?;
        for index in 0..length {
            self.pack_index = index;
            self.node(pattern)?;
            if index + 1 < length {
                self.text(b", ")?;
            }
        }
        Ok(())
    }

    /// The first pack to which a part refers.
    pub(super) fn find_pack(&mut self, id: NodeId) -> Result<Option<NodeId>> {
        self.find_pack_within(id, 0)
    }

    fn find_pack_within(&mut self, id: NodeId, depth: usize) -> Result<Option<NodeId>> {
        self.step()?;
        if depth > MAX_DEPTH {
            return Err(Refused);
        }
        let node = self.get(id);
        if let Node::TemplateParam(number) = node {
            let argument = self.argument_or_pack(number)?;
            return Ok(argument
                .filter(|&argument| matches!(self.get(argument), Node::TemplateArguments(..))));
        }
        for child in node.children().into_iter().flatten() {
            if let Some(pack) = self.find_pack_within(child, depth + 1)? {
                return Ok(Some(pack));
            }
        }
        Ok(None)
    }

    pub(super) fn pack_length(&mut self, pack: NodeId) -> Result<i32> {
        let (mut length, mut next) = (0, Some(pack));
        while let Some(Node::TemplateArguments(Some(_), rest)) = next.map(|list| self.get(list)) {
            self.step()?;
            length += 1;
            next = rest;
        }
        Ok(length)
    }

    /// The number of arguments in a list, in which packs are expanded.
    pub(super) fn count_arguments(&mut self, list: NodeId) -> Result<i32> {
        let (mut count, mut next) = (0, Some(list));
        while let Some(Node::TemplateArguments(Some(first), rest)) = next.map(|list| self.get(list))
        {
            self.step()?;
            count += match self.get(first) {
                Node::Expansion(pattern) => match self.find_pack(pattern)? {
                    Some(pack) => self.pack_length(pack)?,
                    None => 0,
                },
                _ => 1,
            };
            next = rest;
        }
        Ok(count)
    }
}
