import { isDeepStrictEqual } from "node:util";
import type {
  Allocated,
  Check,
  Context,
  Environment,
  Flag,
  Operation,
  Outcome,
  Request,
  Share,
  TargetingRule,
  Weight,
} from "./checks.ts";
import { type ConformanceCase, readSuite } from "./suite.ts";

type Awaitable<T> = T | Promise<T>;

/**
 * An evaluator written in JavaScript. Only `evaluate` is required. An evaluator without `bucket` is checked by its
 * decisions just below and above each bucket.
 */
export type Evaluator = {
  /**
   * Returns null or undefined for a flag that counts as not found. `environment` has what the flag can refer to; it is
   * empty in most cases.
   */
  evaluate(
    flag: Flag,
    context: Context,
    environment: Environment,
  ): Awaitable<Outcome | null | undefined>;
  /** Returns the bucket of a user, 0 to 9999. */
  bucket?(flagKey: string, userId: string): number;
  /** Returns the bucket of a unit in splits, 0 to 9999. The seed is `bucket_seed` or the key of the flag. */
  splitBucket?(seed: string, unit: string): number;
  /**
   * Allocates the buckets of a split after a change of weights, so that the fewest users move. Returns the variations in
   * the order of `weights`, with ascending ranges. For programs that store splits.
   */
  allocateRanges?(before: readonly Allocated[], weights: readonly Weight[]): readonly Share[];
  /** Returns the murmur3 x86 32-bit hash, 0 to 2^32 - 1. */
  hash?(bytes: Uint8Array, seed: number): number;
  /** Returns the fingerprint of an entry of a list as 16 hexadecimal digits. The key has 32. */
  fingerprint?(keyHex: string, text: string): string;
  /** Returns the JSON pointer of the first problem, relative to the array of rules, or undefined for valid rules. */
  validateRules?(rules: readonly TargetingRule[]): string | undefined;
  /**
   * Reads the text of one JSON object. With `reject`, an invalid attribute rejects the context; with `ignore`, it counts
   * as missing.
   */
  readContext?(
    json: string,
    onInvalid: "reject" | "ignore",
  ): { attributes: object } | { rejected: string };
};

/** An evaluator's reply to one request. `stopped` means that it can answer no further request. */
export type Reply =
  | { readonly result: unknown }
  | { readonly error: string }
  | { readonly unsupported: true }
  | { readonly stopped: string };

type Answer = (check: Check) => Reply | Promise<Reply>;

/** A failed check. `expected` and `received` are JSON or a message, for people. */
export type Failure = {
  readonly file: string;
  readonly name: string;
  readonly request: string;
  readonly expected: string;
  readonly received: string;
};

export type SuiteResult = {
  /** The version of the suite. */
  readonly version: string;
  /** Numbers of cases. A skipped case has only requests that the evaluator does not support. */
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
  /** Numbers of requests that the evaluator does not support. */
  readonly unsupported: { readonly [operation in Operation]?: number };
  readonly failures: readonly Failure[];
  /** Set if the evaluator stopped. The later cases were not checked. */
  readonly stopped?: { readonly file: string; readonly name: string; readonly problem: string };
};

export type RunOptions = {
  /** Skips the files that are optional, for languages whose strings cannot contain their texts. Default: false. */
  skipOptional?: boolean;
};

type CaseResult = {
  failures: Failure[];
  unsupported: Operation[];
  stopped?: string;
};

/** Checks all cases. An evaluator that throws fails that case. */
export async function runSuite(
  evaluator: Evaluator,
  options: RunOptions = {},
): Promise<SuiteResult> {
  return runWith(answerWith(evaluator), options);
}

/** Checks one case and returns its failures. For test frameworks that report every case as one test. */
export async function runCase(
  evaluator: Evaluator,
  file: string,
  each: ConformanceCase,
): Promise<readonly Failure[]> {
  return (await checkCase(answerWith(evaluator), file, each)).failures;
}

/** Checks all cases until the evaluator stops. */
export async function runWith(answer: Answer, options: RunOptions): Promise<SuiteResult> {
  const { version, files } = readSuite();
  const counts = { passed: 0, failed: 0, skipped: 0 };
  const unsupported: { [operation in Operation]?: number } = {};
  const failures: Failure[] = [];
  for (const { path, optional, cases } of files) {
    if (options.skipOptional === true && optional !== undefined) continue;
    for (const each of cases) {
      const result = await checkCase(answer, path, each);
      failures.push(...result.failures);
      for (const operation of result.unsupported)
        unsupported[operation] = (unsupported[operation] ?? 0) + 1;
      if (result.stopped !== undefined) {
        const stopped = { file: path, name: each.name, problem: result.stopped };
        return { version, ...counts, unsupported, failures, stopped };
      }
      counts[kindOf(result, each)] += 1;
    }
  }
  return { version, ...counts, unsupported, failures };
}

function kindOf(result: CaseResult, { checks }: ConformanceCase): "passed" | "failed" | "skipped" {
  if (result.failures.length > 0) return "failed";
  return result.unsupported.length === checks.length ? "skipped" : "passed";
}

async function checkCase(
  answer: Answer,
  file: string,
  { name, checks }: ConformanceCase,
): Promise<CaseResult> {
  const failures: Failure[] = [];
  const unsupported: Operation[] = [];
  for (const check of checks) {
    const reply = await answer(check);
    if ("stopped" in reply) return { failures, unsupported, stopped: reply.stopped };
    const { op } = check.request;
    if ("unsupported" in reply && op !== "evaluate") unsupported.push(op);
    else if (!isExpected(check, reply))
      failures.push({ file, name, request: check.requestJson, ...describe(check, reply) });
  }
  return { failures, unsupported };
}

function isExpected({ expected }: Check, reply: Reply): boolean {
  if (!("result" in reply)) return false;
  if ("anyPointer" in expected) return typeof reply.result === "string";
  return isDeepStrictEqual(asJson(reply.result), asJson(expected.result));
}

/** Results are compared as JSON, so that an evaluator in JavaScript may return any kind of object. */
function asJson(value: unknown): unknown {
  return value === undefined ? undefined : JSON.parse(JSON.stringify(value));
}

function describe({ expected }: Check, reply: Reply): { expected: string; received: string } {
  return {
    expected: "anyPointer" in expected ? "a JSON pointer, as a string" : textOf(expected.result),
    received: "result" in reply ? textOf(reply.result) : describeMissing(reply),
  };
}

function describeMissing(reply: Exclude<Reply, { result: unknown }>): string {
  if ("error" in reply) return `error: ${reply.error}`;
  return "unsupported" in reply ? "unsupported" : reply.stopped;
}

function textOf(value: unknown): string {
  return JSON.stringify(value) ?? "undefined";
}

function answerWith(evaluator: Evaluator): Answer {
  return async ({ request }) => {
    try {
      const call = callOf(evaluator, request);
      return call === undefined ? { unsupported: true } : { result: await call() };
    } catch (error) {
      return { error: String(error) };
    }
  };
}

/** Returns the call for a request, or undefined if the evaluator lacks the method. */
function callOf(evaluator: Evaluator, request: Request): (() => unknown) | undefined {
  const { bucket, splitBucket, allocateRanges, hash, fingerprint } = evaluator;
  const { validateRules, readContext } = evaluator;
  switch (request.op) {
    case "evaluate": {
      const { flag, context, flags = [], audiences = {}, chunks = {} } = request;
      const environment = { flags, audiences, chunks };
      return async () => (await evaluator.evaluate(flag, context, environment)) ?? null;
    }
    case "bucket":
      return bucket && (() => bucket.call(evaluator, request.flag_key, request.user_id));
    case "split_bucket":
      return splitBucket && (() => splitBucket.call(evaluator, request.seed, request.unit));
    case "allocate_ranges":
      return (
        allocateRanges && (() => allocateRanges.call(evaluator, request.before, request.weights))
      );
    case "hash":
      return (
        hash &&
        (() => {
          const bytes = Buffer.from(request.bytes_hex, "hex");
          const seed = Number.parseInt(request.seed_hex, 16);
          return hash.call(evaluator, bytes, seed).toString(16).padStart(8, "0");
        })
      );
    case "fingerprint":
      return fingerprint && (() => fingerprint.call(evaluator, request.key_hex, request.text));
    case "validate_rules":
      return (
        validateRules && (() => validateRules.call(evaluator, request.targeting_rules) ?? null)
      );
    case "read_context":
      return readContext && (() => readContext.call(evaluator, request.json, request.on_invalid));
  }
}
