//! Groups of calls: operations that a thread requests between `ncclGroupStart` and `ncclGroupEnd` are carried out at
//! the end.

use std::cell::RefCell;
use std::sync::Arc;

use super::communicator::Communicator;
use super::error::{Failure, Outcome, result};
use super::hip::Handle;
use super::launch;
use super::setup::{self, NewCommunicator};
use super::work::Work;

/// Operations of a communicator, each with its stream.
type Operations = (Arc<Communicator>, Vec<(Work, Handle)>);

/// Calls collected in a thread's group.
#[derive(Default)]
struct Group {
    /// Number of groups that have begun and not ended.
    depth: u32,
    wanted: Vec<NewCommunicator>,
    operations: Vec<Operations>,
    /// The first failure of a call of the group.
    failure: Option<Failure>,
}

thread_local! {
    static GROUP: RefCell<Group> = RefCell::default();
}

/// Begins a group, which may be inside of another one; its calls wait for the end of the outermost group.
pub(super) fn start() {
    GROUP.with_borrow_mut(|group| group.depth += 1);
}

/// Ends a group. At the end of the outermost group the calls are carried out, unless one of them has failed.
pub(super) fn end() -> Outcome {
    let ended = GROUP.with_borrow_mut(|group| {
        let depth = group.depth.checked_sub(1);
        group.depth = depth.ok_or_else(|| {
            let text = "there is no group that could end";
            Failure::new(result::INVALID_USAGE, text)
        })?;
        // Taken out: calls made while the group is carried out begin a new one.
        Ok((group.depth == 0).then(|| std::mem::take(group)))
    })?;
    let Some(group) = ended else {
        return Ok(());
    };
    // A group is carried out as a whole or not at all.
    if let Some(failure) = group.failure {
        return Err(failure);
    }
    setup::make(&group.wanted)?;
    for (communicator, operations) in &group.operations {
        launch::run(communicator, operations)?;
    }
    Ok(())
}

/// Runs the body of a call in the current group, or in a group of its own.
fn within(body: impl FnOnce(&mut Group) -> Outcome) -> Outcome {
    start();
    let asked = GROUP.with_borrow_mut(|group| {
        let asked = body(group);
        if let Err(failure) = &asked {
            // The first failure is the reason; later ones may follow from it.
            group.failure.get_or_insert_with(|| failure.clone());
        }
        asked
    });
    end().and(asked)
}

/// Creates communicators at the end of the outermost group.
pub(super) fn make(wanted: impl FnOnce() -> Outcome<Vec<NewCommunicator>>) -> Outcome {
    within(|group| {
        group.wanted.extend(wanted()?);
        Ok(())
    })
}

/// Carries out operations of a communicator on a stream.
pub(super) fn operate(
    communicator: &Arc<Communicator>,
    stream: Handle,
    works: impl FnOnce() -> Outcome<Vec<Work>>,
) -> Outcome {
    within(|group| {
        let works = works()?.into_iter().map(|work| (work, stream));
        let known = (group.operations.iter_mut()).find(|(of, _)| Arc::ptr_eq(of, communicator));
        // Operations of one communicator are launched together, because sends and receives among them wait for each
        // other.
        match known {
            Some((_, operations)) => operations.extend(works),
            None => {
                let made = (Arc::clone(communicator), works.collect());
                group.operations.push(made);
            }
        }
        Ok(())
    })
}
