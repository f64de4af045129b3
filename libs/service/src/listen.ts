import type { Server } from "node:http";
import type { AddressInfo } from "node:net";

export type ListenAddress = { host: string; port: number };

/** The service cannot listen on its configured address. The message says what to do. */
export class ListenError extends Error {
  override readonly name = "ListenError";
  readonly hasSafeMessage = true;
}

/** Returns a `ListenError` with an explanation for known errors of `listen`, and other errors unchanged. */
export function explainListenError(error: unknown, variable: string, at: ListenAddress): unknown {
  const where = `${at.host}:${at.port}`;
  switch ((error as NodeJS.ErrnoException).code ?? "") {
    case "EADDRINUSE":
      return new ListenError(
        `The address ${where} is already in use: stop the other process, or set ${variable} to a free port (0 selects one).`,
        { cause: error },
      );
    case "EACCES":
      return new ListenError(
        `This user has no permission to listen on ${where}: set ${variable} to a port above 1023.`,
        { cause: error },
      );
    case "EADDRNOTAVAIL":
    case "ENOTFOUND":
      return new ListenError(
        `${at.host} is not an address of this machine: set HOST to such an address, or to 0.0.0.0.`,
        { cause: error },
      );
    default:
      return error;
  }
}

/** Returns the URL of a listening server, for clients on this machine. */
export function urlOfServer(server: Pick<Server, "address">): string {
  const { address, port } = server.address() as AddressInfo;
  const host = address === "0.0.0.0" || address === "::" ? "127.0.0.1" : address;
  return `http://${host.includes(":") ? `[${host}]` : host}:${port}`;
}
