import type { FastifyBaseLogger } from "fastify";
import type { Logger } from "pino";

type Write = (...line: never[]) => void;

/**
 * The logger of one request, with the request's id in each line. It creates the child logger of pino at the first line,
 * because most requests log nothing.
 */
class RequestLogger {
  readonly #parent: Logger;
  readonly #bindings: Record<string, unknown>;
  #own: Logger | undefined;

  constructor(parent: Logger, bindings: Record<string, unknown>) {
    this.#parent = parent;
    this.#bindings = bindings;
  }

  get level(): string {
    return this.#parent.level;
  }

  #child(): Logger {
    this.#own ??= this.#parent.child(this.#bindings);
    return this.#own;
  }

  #write(level: "fatal" | "error" | "warn" | "info" | "debug" | "trace", line: never[]): void {
    const child = this.#child();
    (child[level] as Write).apply(child, line);
  }

  fatal(...line: never[]): void {
    this.#write("fatal", line);
  }
  error(...line: never[]): void {
    this.#write("error", line);
  }
  warn(...line: never[]): void {
    this.#write("warn", line);
  }
  info(...line: never[]): void {
    this.#write("info", line);
  }
  debug(...line: never[]): void {
    this.#write("debug", line);
  }
  trace(...line: never[]): void {
    this.#write("trace", line);
  }
  silent(): void {}

  child(bindings: Record<string, unknown>): FastifyBaseLogger {
    return this.#child().child(bindings);
  }
}

export function createRequestLogger(
  parent: Logger,
  bindings: Record<string, unknown>,
): FastifyBaseLogger {
  return new RequestLogger(parent, bindings) as unknown as FastifyBaseLogger;
}
