//! The GPUs of this machine as NVIDIA's management library (NVML) shows them: which there are, and how they are.

use super::health::Sample;
use super::worker::Input;
use crate::driver::EngineNode;
use nvml_wrapper::Nvml;
use nvml_wrapper::bitmasks::event::EventTypes;
use nvml_wrapper::enum_wrappers::device::{EccCounter, MemoryError, TemperatureSensor, TemperatureThreshold};
use nvml_wrapper::enums::event::XidError;
use nvml_wrapper::error::{NvmlError, NvmlErrorWithSource};
use nvml_wrapper::event::EventSet;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

/// How often the GPUs are asked how they are. Xids come by themselves.
const SAMPLE_EVERY: Duration = Duration::from_secs(10);

/// How long one waits for an Xid.
const WAIT_MS: u32 = 1000;

/// This machine as one node of `pool`. Without NVIDIA's driver it has no GPUs; the second value says why.
pub fn discover(pool: &str) -> (EngineNode, Option<String>) {
    let found = Nvml::init().and_then(|nvml| {
        let gpus = nvml.device_count()?;
        // For people and for constraints, as one word: `nvidia-h200`.
        let kind = if gpus > 0 { nvml.device_by_index(0)?.name()?.to_lowercase().replace(' ', "-") } else { String::new() };
        Ok((gpus, kind))
    });
    let (gpus, kind, why) = match found {
        Ok((gpus, kind)) => (gpus, kind, (gpus == 0).then(|| "the driver knows no GPU".to_string())),
        Err(error) => (0, String::new(), Some(error.to_string())),
    };
    let node = EngineNode {
        name: std::fs::read_to_string("/proc/sys/kernel/hostname").map_or_else(|_| "localhost".into(), |name| name.trim().to_string()),
        pool: pool.into(),
        gpus,
        cpus: std::thread::available_parallelism().map_or(0, |cpus| u32::try_from(cpus.get()).unwrap_or(u32::MAX)),
        memory: memory(),
        block: String::new(),
        features: if kind.is_empty() { Vec::new() } else { vec![kind] },
        express: false,
    };
    (node, why)
}

/// Bytes of memory; 0 if it is not said.
fn memory() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let total = text.lines().find_map(|line| line.strip_prefix("MemTotal:")?.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    total.unwrap_or(0) << 10
}

/// Tells the worker of Xids and how the GPUs are, until it has gone. Without a driver there is nothing to tell.
pub(super) fn watch(to: &Sender<Input>) {
    let Ok(nvml) = Nvml::init() else { return };
    if let Err(error) = watch_with(&nvml, to) {
        tracing::warn!(%error, "the GPUs are not watched any more");
    }
}

fn watch_with(nvml: &Nvml, to: &Sender<Input>) -> Result<(), NvmlError> {
    let count = nvml.device_count()?;
    let events = listen(nvml, count).inspect_err(|error| tracing::warn!(%error, "the GPUs do not report errors by themselves")).ok();
    let mut sample_at = Instant::now();
    loop {
        match events.as_ref().map(|events| events.wait(WAIT_MS)) {
            Some(Ok(event)) => {
                if let (Some(XidError::Value(xid)), Ok(gpu)) = (event.event_data, event.device.index())
                    && to.send(Input::Xid { gpu, xid }).is_err()
                {
                    return Ok(());
                }
            }
            Some(Err(NvmlError::Timeout)) => {}
            // Lost, or no events: what there is to know is in the samples.
            Some(Err(_)) | None => std::thread::sleep(Duration::from_millis(u64::from(WAIT_MS))),
        }
        if Instant::now() >= sample_at {
            sample_at = Instant::now() + SAMPLE_EVERY;
            if to.send(Input::Gpus((0..count).map(|gpu| sample(nvml, gpu)).collect())).is_err() {
                return Ok(());
            }
        }
    }
}

fn listen(nvml: &Nvml, count: u32) -> Result<EventSet<'_>, NvmlErrorWithSource> {
    (0..count).try_fold(nvml.create_event_set()?, |events, gpu| {
        nvml.device_by_index(gpu)?.register_events(EventTypes::CRITICAL_XID_ERROR, events)
    })
}

fn sample(nvml: &Nvml, gpu: u32) -> Sample {
    let device = match nvml.device_by_index(gpu) {
        Ok(device) => device,
        Err(error) => return Sample { gpu, lost: matches!(error, NvmlError::GpuLost), ..Sample::default() },
    };
    let temperature = device.temperature(TemperatureSensor::Gpu);
    Sample {
        gpu,
        lost: matches!(temperature, Err(NvmlError::GpuLost)),
        temperature: temperature.ok(),
        slowdown_at: device.temperature_threshold(TemperatureThreshold::Slowdown).ok(),
        shutdown_at: device.temperature_threshold(TemperatureThreshold::Shutdown).ok(),
        uncorrected: device.total_ecc_errors(MemoryError::Uncorrected, EccCounter::Volatile).ok(),
        utilization: device.utilization_rates().ok().map(|rates| rates.gpu),
    }
}
