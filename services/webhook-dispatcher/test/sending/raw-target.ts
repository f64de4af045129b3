import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { createServer as createTlsServer } from "node:tls";
import type { TestCertificate } from "./test-certificate.ts";

/** A target that sends any bytes that a test chooses, valid HTTP or not. */
type RawTarget = {
  port: number;
  /** All connections since the start. */
  connections: Socket[];
  /** The beginning of each request, unparsed. */
  requests: string[];
  close(): Promise<void>;
};

export async function startRawTarget(options: {
  /** Called for each chunk of data, which counts as a complete request. */
  onRequest: (socket: Socket) => void;
  certificate?: TestCertificate;
  host?: string;
  port?: number;
  /** The path of a Unix domain socket, instead of an address. */
  path?: string;
}): Promise<RawTarget> {
  const connections: Socket[] = [];
  const requests: string[] = [];
  const serve = (socket: Socket) => {
    connections.push(socket);
    // Many of these tests close the connection early.
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
  // The sender may reject the certificate.
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

/** Returns functions that register resources of a test and close them, even if the test fails. */
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
