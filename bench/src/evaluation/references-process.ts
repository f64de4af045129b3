import {
  type CompiledFlag,
  compile,
  compileAudience,
  compileMembership,
  contextOf,
  fingerprintBytes,
  noReferences,
  type References,
  SipHash,
} from "@halyard/evaluation";
import { answerParent } from "../processes/answer-parent.ts";
import { flagState, targetedFlags, type User, userOf } from "../targeting/targeted-flags.ts";

/** Measures what flags cost that refer to audiences and to other flags. */

const flags = 100;
const users = 2_003;
/** Measured calls between two reads of the clock. */
const callsAtOnce = 200;
const key = Uint8Array.from({ length: 16 }, (_, index) => index);

/** Returns the chunks of a list with the entries `user-0`, `user-1`, …. */
function chunksOf(entries: number, bits: number): Uint8Array[] {
  const hash = new SipHash(key);
  const fingerprints = BigUint64Array.from({ length: entries }, (_, number) => {
    hash.hash(`user-${number}`);
    return (BigInt(hash.high) << 32n) | BigInt(hash.low);
  }).sort();
  const chunks = Array.from({ length: 2 ** bits }, () => [] as bigint[]);
  for (const each of fingerprints) chunks[Number(each >> BigInt(64 - bits))]?.push(each);
  return chunks.map((own) => {
    const bytes = Buffer.alloc(own.length * fingerprintBytes);
    for (const [position, each] of own.entries())
      bytes.writeBigUInt64BE(each, position * fingerprintBytes);
    return bytes;
  });
}

const list = { attribute: "id", count: 0, key: Buffer.from(key).toString("hex"), chunks: [] };

/** Looks up as many entries as other ids, in random order. */
function membership(entries: number, bits: number): () => number {
  const has = compileMembership(list, chunksOf(entries, bits));
  const ids = Array.from({ length: 65_536 }, (_, number) => {
    const entry = (number * 7_919) % entries;
    return number % 2 === 0 ? `user-${entry}` : `other-${entry}`;
  });
  let next = 0;
  return () => {
    next = (next + 1) % ids.length;
    return has(ids[next] as string) ? 1 : 0;
  };
}

const asReceived = JSON.parse(
  JSON.stringify(Array.from({ length: users }, (_, number) => userOf(number))),
) as User[];

/** Evaluates all flags for one user. */
function evaluation(compiled: readonly CompiledFlag[]): () => number {
  let next = 0;
  return () => {
    next = (next + 1) % users;
    const context = contextOf(asReceived[next]);
    let on = 0;
    for (const { constant, evaluate } of compiled)
      if ((constant ?? evaluate(context)).value) on += 1;
    return on;
  };
}

const isPro = { attribute: "plan", operator: "equals", value: "pro" } as const;
const base = { enabled: true, rollout_percentage: 100, targeting_rules: [] };
const required = {
  perUser: compile({ ...base, key: "required", targeting_rules: [{ conditions: [isPro] }] }),
  constant: compile({ ...base, key: "required" }),
};
const audience = compileAudience({ match: [[isPro]] });

function rules(more: object, references: Partial<References>): () => number {
  const states = targetedFlags(flags, ["rules"]).map(flagState);
  return evaluation(
    states.map((state) => compile({ ...state, ...more }, { ...noReferences, ...references })),
  );
}

function inAudience(): () => number {
  const states = targetedFlags(flags, ["rules"]).map(flagState);
  const references = { ...noReferences, audiences: new Map([["audience", audience]]) };
  return evaluation(
    states.map((state) => {
      const targeting_rules = state.targeting_rules.map((rule) => ({
        ...rule,
        conditions: [{ audience: "audience" }, ...rule.conditions],
      }));
      return compile({ ...state, targeting_rules }, references);
    }),
  );
}

const requires = [{ flag: "required", is: "on" as const }];
const requiring = (flag: CompiledFlag) =>
  rules({ requires }, { flags: new Map([["required", flag]]) });

const measured = {
  "1,000 entries": () => membership(1_000, 0),
  "1,000,000 entries": () => membership(1_000_000, 4),
  "no reference": () => rules({}, {}),
  "a requirement by user": () => requiring(required.perUser),
  "a constant requirement": () => requiring(required.constant),
  "an audience": inAudience,
};
export type Measured = keyof typeof measured;

const ready = new Map<Measured, () => number>();
/** Returned to the parent, so that V8 cannot remove evaluations as unused. */
let on = 0;

const api = {
  /** Measures CPU time per call: of one lookup, or of 100 flags for one user. */
  speed(name: Measured, durationMs: number) {
    const call = ready.get(name) ?? measured[name]();
    ready.set(name, call);
    const before = process.cpuUsage();
    let calls = 0;
    let usedMicroseconds = 0;
    do {
      for (let count = 0; count < callsAtOnce; count += 1) on += call();
      calls += callsAtOnce;
      const { user, system } = process.cpuUsage(before);
      usedMicroseconds = user + system;
    } while (usedMicroseconds < durationMs * 1e3);
    return { nanoseconds: (usedMicroseconds * 1e3) / calls, on };
  },
};
export type ReferencesApi = typeof api;
answerParent(api);
