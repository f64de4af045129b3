import { once } from "node:events";
import { createServer } from "node:net";
import { hasCode } from "./files.ts";

/** A port that was free a moment ago. Who starts a server on it must be ready to try another one. */
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

/** Tells whether a server could listen on the port right now, and if not, why. */
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
