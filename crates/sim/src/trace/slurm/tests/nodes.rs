use crate::trace::{Reading, Trace};

fn said(list: &str) -> String {
    Trace::read(list.as_bytes(), Reading::default())
        .expect_err("nodes are no jobs")
        .replace("the file lists nodes of Slurm, not jobs; ", "")
}

#[test]
fn scontrol_in_one_line_or_several() {
    let expected = "those with GPUs, as a scenario has them:\
        \n  [[pool.groups]] # a100\n  nodes = 1\n  gpus = 4\n  cpus = 64\n  memory_gib = 500\
        \n  [[pool.groups]] # h100, 1 of them down or drained\n  nodes = 2\n  gpus = 8\n  cpus = 96\n  memory_gib = 1000\n  # 1 nodes without GPUs";
    let one = "NodeName=a1 CfgTRES=cpu=64,mem=512000M,billing=64,gres/gpu=4,gres/gpu:a100=4\n\
        NodeName=h1 State=IDLE CPUTot=96 RealMemory=1024000 Gres=gpu:h100:8(S:0-1) CfgTRES=cpu=96,mem=1000G,gres/gpu=8\n\
        NodeName=h2 State=IDLE+DRAIN CPUTot=96 RealMemory=1024000 Gres=gpu:h100:8(S:0-1)\nNodeName=c1 CfgTRES=cpu=128,mem=10G\n";
    assert_eq!(said(one), expected);
    assert_eq!(said(&one.replace(" C", "\n   C")), expected);
}

#[test]
fn sinfo_counts_a_node_of_two_partitions_once() {
    let expected = "those with GPUs, as a scenario has them:\n  [[pool.groups]] # gen, 1 of them down or drained\n  nodes = 2\n  gpus = 8\n  cpus = 80\n  memory_gib = 488";
    let list = "AVAIL|CPUS|MEMORY|HOSTNAMES|STATE|GRES |NODELIST |PARTITION\nup|80|500000|n1|drain*|gpu:gen:8 |n1 |a\nup|80|500000|n1|drain*|gpu:gen:8 |n1 |b\n\
        up|80|500000|n2|alloc|gpu:gen:8(S:0-1) |n2 |b\n";
    assert_eq!(said(list), expected);
    let bare = "n1      gpu:a100:2(S:2,7),nsight:no_consume:1   gpu:a100:0(IDX:N/A)   mixed-   \nn1 gpu:a100:2 gpu:a100:0 mixed-\nn2 gpu:a100:2 gpu:a100:1 idle\n";
    assert_eq!(said(bare), "those with GPUs, as a scenario has them:\n  [[pool.groups]] # a100\n  nodes = 2\n  gpus = 2");
}

#[test]
fn nodes_of_the_controller() {
    let list = r#"{"nodes": [{"name": "g1", "gres": "gpu:4", "cpus": 32, "real_memory": 524288, "state": ["IDLE", "DRAIN"], "tres": "cpu=32,mem=512G"},
        {"name": "g2", "gres": "gpu:h100:4", "cpus": 32, "real_memory": 524288, "state": ["MIXED"]}, {"name": 3}]}"#;
    let expected = "those with GPUs, as a scenario has them:\
        \n  [[pool.groups]] # GPUs of no named type, 1 of them down or drained\n  nodes = 1\n  gpus = 4\n  cpus = 32\n  memory_gib = 512\
        \n  [[pool.groups]] # h100\n  nodes = 1\n  gpus = 4\n  cpus = 32\n  memory_gib = 512\n  # 1 nodes without GPUs";
    assert_eq!(said(list), expected);
}
