import { startNatsProxy } from "@halyard/testing";

/**
 * A proxy before a NATS server that can break handshakes: the client receives the server's INFO, sends
 * CONNECT and PING, and loses the connection before PONG.
 */
export type HandshakeProxy = {
  url: string;
  /** Closes all open connections, and breaks the next ones during their handshake. */
  breakHandshakes(): void;
  /** Lets new connections through. */
  restore(): void;
  /** Number of handshakes broken so far. */
  broken(): number;
  close(): Promise<void>;
};

export async function startHandshakeProxy(natsUrl: string): Promise<HandshakeProxy> {
  let isBreaking = false;
  let broken = 0;
  const { url, closeConnections, close } = await startNatsProxy(natsUrl, (client, upstream) => {
    client.on("data", (bytes) => {
      if (!isBreaking) {
        upstream.write(bytes);
        return;
      }
      broken += 1;
      client.destroy();
    });
  });
  return {
    url,
    breakHandshakes() {
      isBreaking = true;
      closeConnections();
    },
    restore() {
      isBreaking = false;
    },
    broken: () => broken,
    close,
  };
}
