//! Fair Tree: every user's fair-share factor, from shares and usage.
//!
//! As Slurm documents it (`fair_tree.html`): among siblings the *level fairshare* is S / U, a sibling's part of the siblings' shares by its part
//! of their usage; it is infinite without usage and 0 without shares. The tree is walked depth first, the highest level fairshare first,
//! and users are ranked in the order in which they are met; a user's factor is rank / number of users, the first having the highest rank.
//! Of equal siblings, users share a rank, the children of accounts are compared as if they were siblings, and users go before
//! accounts. Ties take up as many ranks as there are users in them.

use stipend_core::quantity::Ppm;

/// An account with its accounts and users, or (without a child) a user.
#[derive(Clone, Debug, Default)]
pub(super) struct Branch {
    /// Raw shares: only the proportion among siblings matters.
    pub(super) shares: u32,
    /// Decayed usage of all users below, in any unit.
    pub(super) usage: f64,
    pub(super) what: What,
}

/// What is below.
#[derive(Clone, Debug)]
pub(super) enum What {
    Account(Vec<Branch>),
    /// The user's number, by which the factor is found.
    User(usize),
}

impl Default for What {
    fn default() -> What {
        What::Account(Vec::new())
    }
}

impl Branch {
    /// Sums the usage of users up to the accounts above them.
    pub(super) fn sum(&mut self) -> f64 {
        if let What::Account(children) = &mut self.what {
            self.usage = children.iter_mut().map(Branch::sum).sum();
        }
        self.usage
    }
}

/// The factors of users numbered from 0 to `users` (not included) below this root, whose usage is summed.
pub(super) fn factors(root: &Branch, users: usize) -> Vec<Ppm> {
    let mut ranking = Ranking { factors: vec![Ppm(0); users], rank: users, users };
    if let What::Account(children) = &root.what {
        ranking.walk(vec![children]);
    }
    ranking.factors
}

struct Ranking {
    factors: Vec<Ppm>,
    /// The rank of whoever is met next.
    rank: usize,
    users: usize,
}

impl Ranking {
    /// Walks lists of siblings, which are compared with each other although each has its level fairshare among its own.
    fn walk(&mut self, lists: Vec<&Vec<Branch>>) {
        let mut all: Vec<(f64, &Branch)> = lists.into_iter().flat_map(|siblings| levels(siblings)).collect();
        all.sort_by(|(a, _), (b, _)| b.total_cmp(a));
        for tied in all.chunk_by(|(a, _), (b, _)| a == b) {
            let users = tied.iter().filter_map(|(_, branch)| if let What::User(user) = branch.what { Some(user) } else { None });
            let users: Vec<usize> = users.collect();
            for &user in &users {
                self.factors[user] = Ppm((self.rank * 1_000_000 / self.users) as u32);
            }
            self.rank -= users.len();
            let accounts = tied.iter().filter_map(|(_, branch)| if let What::Account(below) = &branch.what { Some(below) } else { None });
            let accounts: Vec<&Vec<Branch>> = accounts.collect();
            if !accounts.is_empty() {
                self.walk(accounts);
            }
        }
    }
}

/// The level fairshare of each of these siblings.
fn levels(siblings: &[Branch]) -> impl Iterator<Item = (f64, &Branch)> {
    let shares: f64 = siblings.iter().map(|branch| f64::from(branch.shares)).sum();
    let usage: f64 = siblings.iter().map(|branch| branch.usage).sum();
    siblings.iter().map(move |branch| {
        let level = match branch {
            Branch { shares: 0, .. } => 0.0,
            Branch { usage, .. } if *usage <= 0.0 => f64::INFINITY,
            _ => (f64::from(branch.shares) / shares) / (branch.usage / usage),
        };
        (level, branch)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(number: usize, shares: u32, usage: f64) -> Branch {
        Branch { shares, usage, what: What::User(number) }
    }

    fn account(shares: u32, children: Vec<Branch>) -> Branch {
        Branch { shares, usage: 0.0, what: What::Account(children) }
    }

    fn ranks(children: Vec<Branch>, users: usize) -> Vec<usize> {
        let mut root = account(1, children);
        root.sum();
        factors(&root, users).into_iter().map(|factor| (factor.0 as usize * users + 500_000) / 1_000_000).collect()
    }

    /// Computed by hand. Accounts: A has 60 of 100 shares and 500 of 1000 used: 0.6 / 0.5 = 1.2. B: 0.3 / 0.4 = 0.75. C: 0.1 / 0.1 = 1.
    /// So A before C before B. In A: users 0 (half of the shares, 300 of 500: 0.833) and 1 (half, 200 of 500: 1.25). In C: user 2 alone (1).
    /// In B: account B1 (20 of 50 shares, 100 of 400: 1.6) before B2 (30 of 50, 300 of 400: 0.8). In B1: users 3 (50 of 100: 1) and 4 (the
    /// same); they tie. In B2: user 5 without usage (infinite) before user 6.
    #[test]
    fn a_tree_by_hand() {
        let a = account(60, vec![user(0, 1, 300.0), user(1, 1, 200.0)]);
        let b1 = account(20, vec![user(3, 1, 50.0), user(4, 1, 50.0)]);
        let b2 = account(30, vec![user(5, 1, 0.0), user(6, 1, 300.0)]);
        let (b, c) = (account(30, vec![b1, b2]), account(10, vec![user(2, 1, 100.0)]));
        assert_eq!(ranks(vec![a, b, c], 7), [6, 7, 5, 4, 4, 2, 1]);
    }

    /// A and B tie, so that their users are compared as if they were siblings: user 0 (half of A's shares, a quarter of its usage: 2),
    /// user 2 (half of B's, a half of its usage: 1), user 3 (the same), user 1 (half, three quarters: 0.67).
    #[test]
    fn children_of_accounts_that_tie_are_compared() {
        let a = account(1, vec![user(0, 1, 25.0), user(1, 1, 75.0)]);
        let b = account(1, vec![user(2, 1, 50.0), user(3, 1, 50.0)]);
        assert_eq!(ranks(vec![a, b], 4), [4, 1, 3, 3]);
    }

    #[test]
    fn who_has_no_shares_comes_last_and_an_account_s_users_never_go_before_those_of_a_better_account() {
        let better = account(50, vec![user(0, 1, 1000.0), user(1, 1, 1.0)]);
        let worse = account(10, vec![user(2, 1, 0.0), user(3, 1, 1000.0)]);
        let none = account(0, vec![user(4, 1, 0.0)]);
        assert_eq!(ranks(vec![better, worse, none], 5), [4, 5, 3, 2, 1]);
    }
}
