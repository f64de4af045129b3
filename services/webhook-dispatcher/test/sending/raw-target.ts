import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { createServer as createTlsServer } from "node:tls";
import type { TestCertificate } from "./test-certificate.ts";

/** A target that says what a test wants on the wire, be it HTTP or not. */
export type RawTarget = {
  port: number;
  /** All that were ever made to it. */
  connections: Socket[];
  /** The beginning of each request, as it came. */
  requests: string[];
  close(): Promise<void>;
};

export async function startRawTarget(options: {
  /** Called when a connection brings something; whatever it is, it is taken for a whole request. */
  onRequest: (socket: Socket) => void;
  certificate?: TestCertificate;
  host?: string;
  port?: number;
  /** Of a socket in the file system, in place of an address. */
  path?: string;
}): Promise<RawTarget> {
  const connections: Socket[] = [];
  const requests: string[] = [];
  const serve = (socket: Socket) => {
    connections.push(socket);
    // Senders go away in the middle, which is what many of these tests are about.
    socket.on("error", () => undefined);
    socket.on("data", (data: Buffer) => {
      requests.push(data.toString());
      options.onRequest(socket);
    });
  };
  const server =
    options.certificate === undefined
      ? createServer(serve)
      : createTlsServer(options.certificate, serve);
  // A sender that does not trust the certificate.
  server.on("tlsClientError", () => undefined);
  if (options.path !== undefined) server.listen(options.path);
  else server.listen(options.port ?? 0, options.host ?? "127.0.0.1");
  await once(server, "listening");
  return {
    port: (server.address() as AddressInfo).port,
    connections,
    requests,
    async close() {
      for (const socket of connections) socket.destroy();
      if (!server.listening) return;
      server.close();
      await once(server, "close");
    },
  };
}

/** Ends whatever a test began, also when it failed. */
export function createClosing(): {
  closing<T extends { close(): Promise<void> }>(part: T): T;
  closeAll(): Promise<void>;
} {
  const parts: { close(): Promise<void> }[] = [];
  return {
    closing(part) {
      parts.push(part);
      return part;
    },
    async closeAll() {
      await Promise.all(parts.splice(0).map((part) => part.close()));
    },
  };
}

export const answerOk = (socket: Socket): void => {
  socket.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
};
