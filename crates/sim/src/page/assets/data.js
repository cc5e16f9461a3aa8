// Reads what `encode.rs` wrote: base64, deflated, columns by name.

const facts = JSON.parse(byId('facts').textContent);

function bytesOf(base64) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(base64);
  const text = atob(base64);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  return bytes;
}

async function inflated(bytes) {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('deflate'));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

// A column, read from its beginning.
class Column {
  constructor(bytes) {
    this.bytes = bytes;
    this.at = 0;
    this.last = 0;
  }

  get done() {
    return this.at >= this.bytes.length;
  }

  number() {
    let value = 0;
    for (let scale = 1; ; scale *= 128) {
      const byte = this.bytes[this.at++];
      value += (byte & 127) * scale;
      if (byte < 128) return value;
    }
  }

  signed() {
    const value = this.number();
    return value % 2 ? -(value + 1) / 2 : value / 2;
  }

  step() {
    this.last += this.signed();
    return this.last;
  }

  all(how) {
    const values = [];
    while (!this.done) values.push(this[how]());
    return values;
  }
}

// The columns of a block by name; each call of one begins anew.
async function block(id) {
  const element = byId(id);
  const bytes = await inflated(bytesOf(element.textContent));
  element.remove();
  const columns = new Map();
  const reader = new Column(bytes);
  const part = () => {
    const length = reader.number();
    reader.at += length;
    return bytes.subarray(reader.at - length, reader.at);
  };
  while (!reader.done) {
    const name = new TextDecoder().decode(part());
    columns.set(name, part());
  }
  return (name) => new Column(columns.get(name));
}

// Series and distributions of a policy.
async function figuresOf(index) {
  const policy = facts.policies[index];
  const column = await block(`figures${index}`);
  const hundredths = (name) => Float64Array.from(column(name).all('step'), (value) => value / 100);
  const ranks = (name, unit) => {
    const from = column(name);
    return { count: from.number(), never: from.number(), values: from.all('step').map((value) => value / unit) };
  };
  const budgets = policy.budgets.map((budget, number) => ({
    ...budget,
    owed: hundredths(`owed${number}`),
    delivered: hundredths(`delivered${number}`),
    arrears: hundredths(`arrears${number}`),
  }));
  return {
    policy: policy.policy,
    budgets,
    waits: Object.fromEntries(['debug', 'medium', 'largest', 'unallocated', 'requeued'].map((of) => [of, ranks(`wait_${of}`, 1e3)])),
    slowdowns: Object.fromEntries(['debug', 'medium', 'largest'].map((of) => [of, ranks(`slowdown_${of}`, 1e6)])),
  };
}
