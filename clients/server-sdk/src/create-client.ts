import { EvaluationEvents, type EvaluationEventsOptions } from "@halyard/evaluation/events";
import { cacheBindingOf, readCacheFile } from "./cache-file.ts";
import { type CacheWriter, createCacheWriter, noCacheWriter } from "./cache-writer.ts";
import type { Client } from "./client.ts";
import { createClientState } from "./client-state.ts";
import { openConnection } from "./connection/connection.ts";
import { createEvaluator } from "./evaluator.ts";
import type { FlagTypes } from "./flag-types.ts";
import { HalyardError } from "./halyard-error.ts";
import { openLists } from "./lists/lists.ts";
import { createLog, type Log } from "./log.ts";
import { type ClientOptions, readOptions, type Settings } from "./options.ts";
import { type Platform, systemPlatform } from "./platform.ts";
import type { Rules } from "./rules/parse-rules.ts";
import { RuleSet } from "./rules/rule-set.ts";
import { startUsage } from "./usage/usage.ts";

const closeTimeoutMs = 2_000;

/**
 * Creates a client and connects it in the background. It never throws. With an invalid base address or key it answers
 * fallbacks, writes one error to the log, and `ready()` resolves with false.
 *
 * `Flags` restricts the keys: `createClient<"new-checkout" | "dark-mode">({ … })`, or the types of flags that
 * `defineFlags` declares.
 */
export function createClient<Flags extends string | FlagTypes = string>(
  options: ClientOptions,
): Client<Flags> {
  return createClientOn<Flags>(systemPlatform, options);
}

/** Creates a client with its own clock and network, for tests. */
export function createClientOn<Flags extends string | FlagTypes = string>(
  platform: Platform,
  options: ClientOptions,
): Client<Flags> {
  const { settings, bootstrap, evaluationEvents, logger, problems } = readOptions(options);
  const log = createLog(logger, platform.clock.monotonicMs);
  const ruleSet = new RuleSet();
  const events = evaluationEvents && eventsOf(evaluationEvents, { ruleSet, platform, log });
  const parts = { log, bootstrap, ruleSet, events };
  if (settings === undefined) return invalidClient(platform, parts, problems) as Client<Flags>;
  if (problems.length > 0) log.write("warn", problems.join(" "));
  return connect(settings, platform, parts) as Client<Flags>;
}

/** The common parts of clients with and without a connection. */
type Parts = {
  log: Log;
  bootstrap: Rules | undefined;
  /** Has no flags yet. */
  ruleSet: RuleSet;
  events: EvaluationEvents | undefined;
};

function eventsOf(
  options: EvaluationEventsOptions,
  { ruleSet, platform, log }: { ruleSet: RuleSet; platform: Platform; log: Log },
): EvaluationEvents {
  return new EvaluationEvents(options, {
    after: (delayMs, callback) => platform.clock.after(delayMs, callback, { background: true }),
    warn: (message) => log.write("warn", message),
    setId: () => ruleSet.flagSetId,
  });
}

function connect(
  settings: Settings,
  platform: Platform,
  { log, bootstrap, ruleSet, events }: Parts,
): Client {
  const { clock } = platform;
  const state = createClientState({ ruleSet, clock, log, pollIntervalMs: settings.pollIntervalMs });
  const onError = state.failed;
  const savedAt = readCached(settings, ruleSet, onError);
  state.storedAt(savedAt);
  if (savedAt === undefined) useBootstrap(ruleSet, bootstrap);
  const cache = cacheWriterOf(settings, { ruleSet, clock, onError });
  const usage = startUsage({ settings, platform, ruleSet, onError });
  const lists = openLists({
    ...{ settings, platform, ruleSet, onError },
    onChange(keys) {
      cache.schedule();
      state.listsChanged(keys);
    },
  });
  lists.update([]);
  const connection = openConnection({
    ...{ settings, platform, ruleSet },
    events: {
      confirmed(source, changed) {
        cache.schedule();
        lists.update(changed);
        state.confirmed(source, changed);
      },
      lost: state.lost,
      failed(error) {
        if (error.fatal) stopRequests();
        state.failed(error);
      },
    },
  });
  let closing: Promise<void> | undefined;

  function stopRequests(): void {
    usage.stop();
    lists.stopRequests();
  }

  async function close(): Promise<void> {
    connection.stop();
    lists.stop();
    state.close();
    events?.flush();
    await Promise.all([usage.close(closeTimeoutMs), cache.close()]);
  }

  return {
    ...createEvaluator({ ruleSet, hasValidOptions: true, log }, events),
    ...{ ready: state.ready, on: state.on, off: state.off },
    get status() {
      return state.status;
    },
    get flagSetId() {
      return ruleSet.flagSetId;
    },
    close() {
      closing ??= close();
      return closing;
    },
  };
}

function cacheWriterOf(
  { cacheFile: path, baseUrl, serverKey }: Settings,
  options: Omit<Parameters<typeof createCacheWriter>[0], "path" | "binding">,
): CacheWriter {
  if (path === undefined) return noCacheWriter;
  return createCacheWriter({ path, binding: cacheBindingOf(baseUrl, serverKey), ...options });
}

/** Takes the flags of the cache file. Returns the time of its write; undefined without a usable file. */
function readCached(
  { cacheFile, baseUrl, serverKey }: Settings,
  ruleSet: RuleSet,
  report: (error: HalyardError) => void,
): Date | undefined {
  if (cacheFile === undefined) return undefined;
  const reading = readCacheFile(cacheFile, cacheBindingOf(baseUrl, serverKey));
  if (reading.found) {
    const { rules, chunks, etag, savedAt } = reading.cached;
    ruleSet.replace(rules, etag, "cache");
    ruleSet.addChunks(chunks);
    return savedAt;
  }
  const { problem } = reading;
  if (problem !== undefined)
    report(new HalyardError("cache_file", `The cache file is ignored: ${problem}.`));
  return undefined;
}

function useBootstrap(ruleSet: RuleSet, bootstrap: Rules | undefined): void {
  if (bootstrap !== undefined) ruleSet.replace(bootstrap, undefined, "bootstrap");
}

/** A client that cannot connect. It answers from the bootstrap object, or else fallbacks. */
function invalidClient(
  { clock }: Platform,
  { log, bootstrap, ruleSet, events }: Parts,
  problems: readonly string[],
): Client {
  useBootstrap(ruleSet, bootstrap);
  const state = createClientState({ ruleSet, clock, log, pollIntervalMs: 0 });
  state.failed(new HalyardError("invalid_options", problems.join(" "), { fatal: true }));
  return {
    ...createEvaluator({ ruleSet, hasValidOptions: false, log }, events),
    ...{ ready: state.ready, on: state.on, off: state.off },
    get status() {
      return state.status;
    },
    get flagSetId() {
      return ruleSet.flagSetId;
    },
    async close() {
      state.close();
      events?.flush();
    },
  };
}
