import type { Server } from "node:http";
import type { AddressInfo } from "node:net";

export type ListenAddress = { host: string; port: number };

/** The service cannot listen where it was told to. The message says what to do. */
export class ListenError extends Error {
  override readonly name = "ListenError";
  readonly hasSafeMessage = true;
}

/** Turns the system's refusal into a sentence; other errors stay as they are. */
export function explainListenError(error: unknown, variable: string, at: ListenAddress): unknown {
  const where = `${at.host}:${at.port}`;
  switch ((error as NodeJS.ErrnoException).code ?? "") {
    case "EADDRINUSE":
      return new ListenError(
        `Something else listens on ${where} already: stop it, or set ${variable} to a free port (0 takes any).`,
        { cause: error },
      );
    case "EACCES":
      return new ListenError(
        `This user may not listen on ${where}: set ${variable} to a port above 1023.`,
        { cause: error },
      );
    case "EADDRNOTAVAIL":
    case "ENOTFOUND":
      return new ListenError(
        `${at.host} is not an address of this machine: set HOST to one that is, or to 0.0.0.0.`,
        { cause: error },
      );
    default:
      return error;
  }
}

/** The URL under which a listening server is reached from this machine. */
export function urlOfServer(server: Pick<Server, "address">): string {
  const { address, port } = server.address() as AddressInfo;
  const host = address === "0.0.0.0" || address === "::" ? "127.0.0.1" : address;
  return `http://${host.includes(":") ? `[${host}]` : host}:${port}`;
}
