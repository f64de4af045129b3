import type { EvaluationEventsOptions } from "@halyard/evaluation/events";
import { consoleLogger, type Logger } from "./log.ts";
import { parseRules, type Rules } from "./rules/parse-rules.ts";

export type ClientOptions = {
  /** Address of Halyard's gateway or of an edge, such as `https://flags.example.com`. A path prefix is kept. */
  baseUrl: string;
  /** A reader key, which begins with `hr_`, or a server key (`hs_`). */
  serverKey: string;
  /** Path of a file for the flags, so that the next start has them without the service. Its folder is created. */
  cacheFile?: string | undefined;
  /** A response of `GET /api/v1/sdk/ruleset`, used until there is anything newer. */
  bootstrap?: unknown;
  /** Interval of requests while there is no stream, 1,000 to 86,400,000 ms. Default: 60,000. */
  pollIntervalMs?: number | undefined;
  /** Default: warnings and errors on the console. */
  logger?: Partial<Logger> | undefined;
  /** Emits the evaluations as events of OpenTelemetry: `{ logger: logs.getLogger("shop") }`. Default: none. */
  evaluationEvents?: EvaluationEventsOptions | undefined;
};

/** Validated options. */
export type Settings = {
  /** Without a slash at the end. */
  baseUrl: string;
  serverKey: string;
  cacheFile: string | undefined;
  pollIntervalMs: number;
};

type ReadOptions = {
  /** Undefined if the client cannot connect with these options. */
  settings: Settings | undefined;
  bootstrap: Rules | undefined;
  evaluationEvents: EvaluationEventsOptions | undefined;
  logger: Logger;
  /** One sentence for each invalid option. No sentence contains a value of an option. */
  problems: string[];
};

const serverKeyShape = /^h[rs]_[a-z2-7]{16}_[A-Za-z0-9_-]{43}$/;
const defaultPollIntervalMs = 60_000;
const minPollIntervalMs = 1_000;
const maxPollIntervalMs = 86_400_000;

/** Reads the options of an application, which can contain anything. Invalid optional ones have no effect. */
export function readOptions(options: unknown): ReadOptions {
  try {
    return readEach(options);
  } catch {
    const problems = ["Invalid options: reading them threw an exception."];
    const none = { settings: undefined, bootstrap: undefined, evaluationEvents: undefined };
    return { ...none, logger: consoleLogger, problems };
  }
}

function readEach(options: unknown): ReadOptions {
  const given = typeof options === "object" && options !== null ? options : {};
  const { baseUrl, serverKey, cacheFile, bootstrap, pollIntervalMs, logger, evaluationEvents } =
    given as Partial<Record<keyof ClientOptions, unknown>>;
  const problems: string[] = [];
  const base = readBaseUrl(baseUrl, problems);
  const key = readServerKey(serverKey, problems);
  const file = readCacheFile(cacheFile, problems);
  const interval = readPollInterval(pollIntervalMs, problems);
  return {
    settings:
      base === undefined || key === undefined
        ? undefined
        : { baseUrl: base, serverKey: key, cacheFile: file, pollIntervalMs: interval },
    bootstrap: readBootstrap(bootstrap, problems),
    evaluationEvents: readEvaluationEvents(evaluationEvents, problems),
    logger: readLogger(logger, problems),
    problems,
  };
}

function readBaseUrl(value: unknown, problems: string[]): string | undefined {
  const url = typeof value === "string" && URL.canParse(value) ? new URL(value) : undefined;
  if (url === undefined || (url.protocol !== "https:" && url.protocol !== "http:")) {
    problems.push("Invalid `baseUrl`: expected an address such as https://flags.example.com.");
    return undefined;
  }
  if (url.username !== "" || url.password !== "" || url.search !== "" || url.hash !== "") {
    problems.push("Invalid `baseUrl`: remove the user name, password, query or fragment.");
    return undefined;
  }
  return `${url.origin}${url.pathname}`.replace(/\/+$/, "");
}

function readServerKey(value: unknown, problems: string[]): string | undefined {
  const key = typeof value === "string" ? value.trim() : "";
  if (serverKeyShape.test(key)) return key;
  problems.push(
    key.startsWith("hc_")
      ? "Invalid `serverKey`: this is a client key. Use a reader key, which begins with hr_."
      : "Invalid `serverKey`: expected a reader key, which begins with hr_, or a server key.",
  );
  return undefined;
}

function readCacheFile(value: unknown, problems: string[]): string | undefined {
  if (value === undefined || value === null) return undefined;
  if (typeof value === "string" && value !== "" && !value.includes("\0")) return value;
  problems.push("Invalid `cacheFile`: expected a path. The client works without a cache file.");
  return undefined;
}

/** Returns a copy, which the application cannot change. */
function readBootstrap(value: unknown, problems: string[]): Rules | undefined {
  if (value === undefined || value === null) return undefined;
  const parsed = parseRules(toJson(value));
  if (parsed.ok) return parsed.value;
  problems.push(`\`bootstrap\` is ignored: ${parsed.problem}.`);
  return undefined;
}

/** Returns an empty text for a value that JSON cannot express, and for one whose getters throw. */
function toJson(value: unknown): string {
  try {
    return JSON.stringify(value) ?? "";
  } catch {
    return "";
  }
}

function readPollInterval(value: unknown, problems: string[]): number {
  if (value === undefined || value === null) return defaultPollIntervalMs;
  const isValid =
    typeof value === "number" && value >= minPollIntervalMs && value <= maxPollIntervalMs;
  if (isValid) return value;
  problems.push(
    `Invalid \`pollIntervalMs\`: expected ${minPollIntervalMs} to ${maxPollIntervalMs}. The client uses ${defaultPollIntervalMs}.`,
  );
  return defaultPollIntervalMs;
}

function readEvaluationEvents(
  value: unknown,
  problems: string[],
): EvaluationEventsOptions | undefined {
  if (value === undefined || value === null) return undefined;
  const { logger, contextId } = value as Partial<EvaluationEventsOptions>;
  if (typeof logger?.emit === "function") return { logger, contextId };
  problems.push("Invalid `evaluationEvents`: expected a `logger` with the function `emit`.");
  return undefined;
}

/** Methods that the application's logger lacks are those of the console. */
function readLogger(value: unknown, problems: string[]): Logger {
  if (value === undefined || value === null) return consoleLogger;
  const given = value as Partial<Logger>;
  const has = (level: keyof Logger) => typeof given[level] === "function";
  if (!has("info") || !has("warn") || !has("error"))
    problems.push("Invalid `logger`: expected the functions `info`, `warn` and `error`.");
  return {
    info: (message, details) => (has("info") ? given : consoleLogger).info?.(message, details),
    warn: (message, details) => (has("warn") ? given : consoleLogger).warn?.(message, details),
    error: (message, details) => (has("error") ? given : consoleLogger).error?.(message, details),
  };
}
