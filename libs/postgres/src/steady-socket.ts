import { EventEmitter } from "node:events";
import { connect as connectTcp, isIP, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import type { Tls } from "./tls.ts";
import { WholeResults } from "./whole-results.ts";

/**
 * The connection's socket as the client library sees it. The library (postgres.js 3.4) does not take
 * the end of a socket well: a statement that follows, such as the `rollback` of the transaction that
 * was broken off, is either written to a socket that is null, which ends the process, or waits on,
 * and the answer to another statement is given to it when the connection is made anew.
 *
 * So this socket ends in an order that the library copes with. First it reports an error, which
 * rejects everything that is under way. What is written after that is rejected in the same way. Only
 * when nothing has been written for a few turns of the event loop does it say that it is closed, and
 * nothing is left behind in the connection that the library goes on to use.
 *
 * A server that has gone without a word (its machine lost power, a firewall dropped the connection) would
 * be waited for until the system gives up, which takes a quarter of an hour. So a socket that was written
 * to and hears nothing for longer than any statement may take counts as lost.
 *
 * TLS is negotiated here, because the library would put a socket of its own over this one.
 */
/** The code by which a lost connection is known, as the library itself would give it. */
const closedCode = "CONNECTION_CLOSED";
/** Above the 15 s after which the server itself ends a statement, and says so. */
const longestSilenceMs = 20_000;
/** A broken transaction writes its `rollback` within two turns. */
const quietTurnsBeforeClose = 4;
const tlsRequest = Buffer.from([0, 0, 0, 8, 4, 210, 22, 47]);
const tlsAccepted = "S".charCodeAt(0);

export class ConnectionClosedError extends Error {
  override name = "ConnectionClosedError";
  readonly hasSafeMessage = true;
  readonly code = closedCode;
}

export class SteadySocket extends EventEmitter {
  #wire: Socket;
  /** What is written before the connection stands. */
  #early: Buffer[] | undefined = [];
  #ending = false;
  #lost = false;
  #writtenSinceLost = false;
  readonly #results = new WholeResults();
  readonly #silenceMs: number;
  /** Runs from the first write that nothing was heard after. */
  #silence: NodeJS.Timeout | undefined;

  constructor(options: { host: string; port: number; tls: Tls; silenceMs?: number }) {
    super();
    const { host, port, tls } = options;
    this.#silenceMs = options.silenceMs ?? longestSilenceMs;
    this.#wire = connectTcp({ host, port, noDelay: true });
    this.#listenForTheEnd();
    this.#wire.once("connect", () => {
      if (tls.mode === "off") this.#begin();
      else this.#negotiateTls(host, tls);
    });
  }

  get readyState(): "open" | "opening" | "closed" {
    if (this.#lost) return "closed";
    return this.#early === undefined ? "open" : "opening";
  }

  setKeepAlive(enable: boolean, initialDelayMs: number): void {
    this.#wire.setKeepAlive(enable, initialDelayMs);
  }

  write(data: Uint8Array): boolean {
    if (this.#lost) this.#writtenSinceLost = true;
    else if (this.#early === undefined) return this.#say(data);
    else this.#early.push(Buffer.from(data));
    return true;
  }

  end(data: Uint8Array): void {
    this.#ending = true;
    this.#wire.end(data);
  }

  destroy(): void {
    this.#lose(new ConnectionClosedError("the connection to PostgreSQL was given up"));
  }

  #begin(): void {
    this.#wire
      .on("data", (data) => {
        clearTimeout(this.#silence);
        this.#silence = undefined;
        for (const part of this.#results.receive(data)) this.emit("data", part);
      })
      .on("drain", () => this.emit("drain"));
    const early = this.#early ?? [];
    this.#early = undefined;
    for (const data of early) this.#say(data);
  }

  #say(data: Uint8Array): boolean {
    this.#silence ??= setTimeout(
      () => this.#lose(new ConnectionClosedError("PostgreSQL has fallen silent")),
      this.#silenceMs,
    ).unref();
    return this.#wire.write(data);
  }

  #negotiateTls(host: string, tls: Tls): void {
    this.#wire.write(tlsRequest);
    this.#wire.once("data", (answer) => {
      if (answer[0] !== tlsAccepted) {
        this.#lose(new ConnectionClosedError("PostgreSQL does not speak TLS"));
        return;
      }
      this.#wire.removeAllListeners();
      this.#wire = connectTls({
        socket: this.#wire,
        rejectUnauthorized: tls.mode === "verified",
        ...(tls.ca === undefined ? {} : { ca: tls.ca }),
        ...(isIP(host) === 0 ? { servername: host } : {}),
      });
      this.#listenForTheEnd();
      this.#wire.once("secureConnect", () => this.#begin());
    });
  }

  #listenForTheEnd(): void {
    const closed = () =>
      this.#lose(new ConnectionClosedError("the connection to PostgreSQL was closed"));
    this.#wire
      .on("error", (error) => this.#lose(error))
      .on("end", closed)
      .on("close", closed);
  }

  #lose(cause: Error): void {
    if (this.#lost) return;
    this.#lost = true;
    clearTimeout(this.#silence);
    this.#wire.destroy();
    if (this.#ending) {
      this.emit("close", false);
      return;
    }
    for (const part of this.#results.interrupt()) this.emit("data", part);
    this.emit("error", cause);
    this.#closeWhenQuiet(quietTurnsBeforeClose);
  }

  #closeWhenQuiet(turns: number): void {
    if (turns === 0) {
      this.emit("close", true);
      return;
    }
    setImmediate(() => {
      if (!this.#writtenSinceLost) {
        this.#closeWhenQuiet(turns - 1);
        return;
      }
      this.#writtenSinceLost = false;
      this.emit("error", new ConnectionClosedError("the connection to PostgreSQL is closed"));
      this.#closeWhenQuiet(quietTurnsBeforeClose);
    });
  }
}
