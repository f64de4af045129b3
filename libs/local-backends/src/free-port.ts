import { once } from "node:events";
import { createServer } from "node:net";

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

/** Tells whether a server could listen on the port right now. */
export async function isPortFree(options: { host: string; port: number }): Promise<boolean> {
  const server = createServer();
  return new Promise((resolve, reject) => {
    server.once("error", (error: NodeJS.ErrnoException) => {
      if (error.code === "EADDRINUSE" || error.code === "EACCES") resolve(false);
      else reject(error);
    });
    server.listen({ port: options.port, host: options.host, exclusive: true }, () => {
      server.close(() => resolve(true));
    });
  });
}
