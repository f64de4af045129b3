import { randomInt } from "node:crypto";
import { createServer } from "node:net";
import { hasCode } from "./files.ts";

/** Below the ports that operating systems give to outgoing connections, which are taken and freed all the time. */
const [firstPort, endPort] = [20_000, 32_000];

/** Returns a free port. Another process may take it before the caller listens on it. */
export async function findFreePort(host: string): Promise<number> {
  for (;;) {
    const port = randomInt(firstPort, endPort);
    if ((await portState({ host, port })) === "free") return port;
  }
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
