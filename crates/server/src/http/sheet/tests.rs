use super::*;

fn budget(id: u32, path: &str, shares: [f64; 2]) -> Budget {
    let in_pool = |(pool, share): (&str, f64)| BudgetInPool {
        pool: pool.into(),
        share_percent: share,
        claim: share / 100.0,
        standing: None,
        below_share: false,
        allocated_gpus: 0,
        unallocated_gpus: 0,
        waiting_gpus: 0,
        gpus_max: (pool == "h100").then_some(64),
        unallocated_gpus_max: None,
        min_runtime_max_ms: (pool == "h100").then_some(5_400_000),
    };
    Budget {
        id,
        path: path.into(),
        leaf: true,
        closed: false,
        managers: vec!["ada".into(), "bob".into()],
        members: Vec::new(),
        order: "priority".into(),
        pools: ["h100", "a100"].into_iter().zip(shares).map(in_pool).collect(),
    }
}

fn tree() -> Tree {
    Tree { version: 3, budgets: vec![budget(0, "lab", [100.0, 100.0]), budget(1, "lab/nlp", [12.5, 0.0])] }
}

#[test]
fn what_is_exported_changes_nothing() {
    let sheet = write(&tree());
    assert_eq!(sheet.lines().nth(3).unwrap(), "1,lab/nlp,h100,12.5,64,,90m,priority,ada bob,");
    assert_eq!(read(&sheet, &tree()).unwrap(), []);
    // As a spreadsheet of another country writes it.
    let foreign = sheet.replace(',', ";").replace("12.5", "12,5");
    let changes = read(&format!("\u{feff}{foreign}"), &tree()).unwrap();
    assert_eq!(changes, [BudgetChange { path: "lab/nlp".into(), share: by("h100", 12.5), ..BudgetChange::default() }]);
}

fn by<T>(pool: &str, value: T) -> Option<PerPool<T>> {
    Some(PerPool::By([(pool.to_string(), value)].into()))
}

#[test]
fn only_what_differs_is_changed() {
    let sheet = "path,pool,share_percent,gpus_max,min_runtime_max,members\n\
        lab/nlp,h100,20 %,,2h,\n\
        lab/nlp,a100,5,,,\n\
        lab/new,h100,10,8,,eve zoe\n\n";
    let by_pool = |pools: [(&str, f64); 2]| Some(PerPool::By(pools.map(|(pool, share)| (pool.to_string(), share)).into()));
    let expected = [
        BudgetChange {
            path: "lab/nlp".into(),
            share: by_pool([("h100", 20.0), ("a100", 5.0)]),
            gpus_max: by("h100", None),
            min_runtime_max: by("h100", Some(Length(Span::hours(2)))),
            ..BudgetChange::default()
        },
        BudgetChange {
            path: "lab/new".into(),
            share: by("h100", 10.0),
            gpus_max: by("h100", Some(8)),
            members: Some(vec!["eve".into(), "zoe".into()]),
            ..BudgetChange::default()
        },
    ];
    assert_eq!(read(sheet, &tree()).unwrap(), expected);
}

#[test]
fn a_known_number_with_another_path_moves() {
    let changes = read("id,path,pool\n1,lab/language,h100\n1,lab/language,a100\n", &tree()).unwrap();
    let expected = BudgetChange { path: "lab/nlp".into(), rename_to: Some("lab/language".into()), ..BudgetChange::default() };
    assert_eq!(changes, [expected]);
}

#[test]
fn faults_name_line_column_and_value() {
    for (sheet, message) in [
        ("", "line 1: the column path is missing"),
        ("path,shares\n", "line 1: there is no column `shares`; "),
        ("path,pool,path\n", "line 1: the column path is there twice"),
        ("path,pool,share_percent\nlab/nlp,h100,half\n", "line 2: share_percent: `half`: expected percent"),
        ("path,pool,gpus_max\nlab/nlp,h100,-1\n", "line 2: gpus_max: `-1`: expected a number of GPUs"),
        ("path,pool,min_runtime_max\nlab/nlp,h100,soon\n", "line 2: min_runtime_max: `soon`: expected a length"),
        ("path,pool\n,h100\n", "line 2: path: ``: it is empty"),
        ("path,share_percent\nlab/nlp,5\n", "line 2: pool: ``: it is empty; pools are h100, a100"),
        ("id,path,pool\n7,lab/nlp,h100\n", "line 2: id: `7`: no budget has this number"),
        ("path,pool,members\nlab/nlp,h100,eve\nlab/nlp,a100,zoe\n", "line 3: members: `zoe`: another row"),
    ] {
        let error = read(sheet, &tree()).unwrap_err();
        assert!(error.starts_with(message), "{error}");
    }
}
