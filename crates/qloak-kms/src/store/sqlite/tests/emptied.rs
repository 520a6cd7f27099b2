//! When the two ends of a link no longer store the same blocks, both lose them and begin anew.

use super::*;

#[test]
fn a_new_ledger_at_the_other_end_empties_the_link() {
    let (alice, bob) = pair(2, 2);
    assert!(!alice.meet(&bob));
    assert!(!bob.meet(&alice));
    assert_eq!(alice.stock(Owner::Alice), 2);
    let fresh = Site::new(Owner::Bob);
    assert!(alice.meet(&fresh));
    assert!(!alice.meet(&fresh));
    assert_eq!((alice.stock(Owner::Alice), alice.stock(Owner::Bob)), (0, 0));
    // And its batches, numbered from 1 again, are taken.
    alice
        .store()
        .add_batch(LINK, blocks(&[Owner::Alice]))
        .unwrap();
    carry(&alice, &fresh);
    assert_eq!(
        (alice.stock(Owner::Alice), fresh.stock(Owner::Alice)),
        (1, 1)
    );
    let new_alice = Site::new(Owner::Alice);
    assert!(bob.meet(&new_alice));
    new_alice
        .store()
        .add_batch(LINK, blocks(&[Owner::Bob]))
        .unwrap();
    carry(&new_alice, &bob);
    assert_eq!((bob.stock(Owner::Alice), bob.stock(Owner::Bob)), (0, 1));
}

/// Rounds of messages until neither end is emptied any more.
fn settle(alice: &Site, bob: &Site) {
    let rounds = (0..4).take_while(|_| bob.meet(alice) | alice.meet(bob));
    assert!(rounds.count() < 4, "the ends empty each other for ever");
}

#[test]
fn a_ledger_that_comes_back_after_another_empties_both_ends() {
    let (alice, bob) = pair(2, 2);
    settle(&alice, &bob);
    assert_eq!(alice.stock(Owner::Alice), 2);
    // Another alice, then the first one; then another bob, then the first one.
    let (other_alice, other_bob) = (Site::new(Owner::Alice), Site::new(Owner::Bob));
    for (first, second) in [
        (&other_alice, &bob),
        (&alice, &bob),
        (&alice, &other_bob),
        (&alice, &bob),
    ] {
        settle(first, second);
        let left = |site: &Site| site.stock(Owner::Alice) + site.stock(Owner::Bob);
        assert_eq!((left(first), left(second)), (0, 0));
        first
            .store()
            .add_batch(LINK, blocks(&[Owner::Alice, Owner::Bob]))
            .unwrap();
        carry(first, second);
        assert_eq!((left(first), left(second)), (2, 2));
        settle(first, second);
        assert_eq!((left(first), left(second)), (2, 2));
    }
}

#[test]
fn an_end_that_is_emptied_once_empties_the_other_and_stays_so_over_a_restart() {
    for by in [Owner::Alice, Owner::Bob] {
        let (mut alice, bob) = pair(2, 2);
        settle(&alice, &bob);
        let site = if by == Owner::Alice { &alice } else { &bob };
        let epoch = site.store().epoch(LINK).unwrap();
        assert!(site.store().empty(LINK, by, epoch).unwrap());
        assert!(!site.store().empty(LINK, by, epoch).unwrap(), "once only");
        alice.restart();
        settle(&alice, &bob);
        for site in [&alice, &bob] {
            assert_eq!((site.stock(Owner::Alice), site.stock(Owner::Bob)), (0, 0));
        }
    }
}
