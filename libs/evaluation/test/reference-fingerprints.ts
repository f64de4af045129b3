/** Fingerprints for tests: SipHash-2-4 in big integers, as the paper describes it. Shares no code with the engine. */

const bits64 = (value: bigint): bigint => BigInt.asUintN(64, value);
const rotate = (value: bigint, by: bigint): bigint => bits64((value << by) | (value >> (64n - by)));

function littleEndian(bytes: Uint8Array): bigint {
  return bytes.reduceRight((sum, byte) => (sum << 8n) | BigInt(byte), 0n);
}

/** One round of SipHash. */
function round([v0, v1, v2, v3]: bigint[]): bigint[] {
  let [a = 0n, b = 0n, c = 0n, d = 0n] = [v0, v1, v2, v3];
  a = bits64(a + b);
  c = bits64(c + d);
  b = rotate(b, 13n) ^ a;
  d = rotate(d, 16n) ^ c;
  a = rotate(a, 32n);
  a = bits64(a + d);
  c = bits64(c + b);
  d = rotate(d, 21n) ^ a;
  b = rotate(b, 17n) ^ c;
  c = rotate(c, 32n);
  return [a, b, c, d];
}

/** Returns the fingerprint of a text. `key` has 32 hexadecimal digits. */
export function fingerprintByReference(key: string, text: string): bigint {
  const keyBytes = Buffer.from(key, "hex");
  const k0 = littleEndian(keyBytes.subarray(0, 8));
  const k1 = littleEndian(keyBytes.subarray(8));
  const constants = ["somepseu", "dorandom", "lygenera", "tedbytes"];
  let state = constants.map((constant, index) => {
    const word = BigInt(`0x${Buffer.from(constant).toString("hex")}`);
    return word ^ (index % 2 === 0 ? k0 : k1);
  });
  const bytes = new TextEncoder().encode(text);
  const wholeBytes = bytes.length - (bytes.length % 8);
  const words = Array.from({ length: wholeBytes / 8 }, (_, index) =>
    littleEndian(bytes.subarray(8 * index, 8 * index + 8)),
  );
  words.push((BigInt(bytes.length % 256) << 56n) | littleEndian(bytes.subarray(wholeBytes)));
  for (const word of words) {
    state[3] = (state[3] ?? 0n) ^ word;
    state = round(round(state));
    state[0] = (state[0] ?? 0n) ^ word;
  }
  state[2] = (state[2] ?? 0n) ^ 0xffn;
  return round(round(round(round(state)))).reduce((sum, word) => sum ^ word, 0n);
}

/** Returns the 2^bits chunks of a list: sorted fingerprints of 8 bytes, by their leading bits. */
export function chunksByReference(
  key: string,
  members: readonly string[],
  bits: number,
): Uint8Array[] {
  const fingerprints = [...new Set(members.map((member) => fingerprintByReference(key, member)))];
  return Array.from({ length: 2 ** bits }, (_, position) => {
    const own = fingerprints
      .filter((each) => each >> BigInt(64 - bits) === BigInt(position))
      .sort((one, other) => (one < other ? -1 : 1))
      .map((each) => each.toString(16).padStart(16, "0"));
    return Uint8Array.from(Buffer.from(own.join(""), "hex"));
  });
}
