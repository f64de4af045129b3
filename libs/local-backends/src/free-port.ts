import { once } from "node:events";
import { createServer } from "node:net";
import { hasCode } from "./files.ts";

/** Returns a free port. Another process may take it before the caller listens on it. Callers must be able to retry. */
export async function findFreePort(host: string): Promise<number> {
  const server = createServer();
  server.listen({ port: 0, host, exclusive: true });
  await once(server, "listening");
  const address = server.address();
  server.close();
  await once(server, "close");
  if (address === null || typeof address === "string") throw new Error("a TCP server has a port");
  return address.port;
}

export type PortState = "free" | "taken" | "forbidden";

/** Returns whether a server could listen on the port now, or the reason why not. */
export async function portState(options: { host: string; port: number }): Promise<PortState> {
  const server = createServer();
  return new Promise((resolve, reject) => {
    server.once("error", (error) => {
      if (hasCode(error, "EADDRINUSE")) resolve("taken");
      else if (hasCode(error, "EACCES")) resolve("forbidden");
      else reject(error);
    });
    server.listen({ port: options.port, host: options.host, exclusive: true }, () => {
      server.close(() => resolve("free"));
    });
  });
}
