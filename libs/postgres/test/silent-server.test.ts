import { once } from "node:events";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import { afterEach, beforeEach, describe, expect, it, jest } from "@jest/globals";
import { isOutage } from "../src/failures.ts";
import { SteadySocket } from "../src/steady-socket.ts";

/** A server that takes connections and, as if its machine were gone, says nothing unless it is told to. */
let server: Server;
let accepted: Socket[];

beforeEach(async () => {
  accepted = [];
  server = createServer((socket) => accepted.push(socket.on("error", () => undefined)));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
});
afterEach(() => {
  jest.useRealTimers();
  for (const socket of accepted) socket.destroy();
  server.close();
});

const emptyQueryResponse = Buffer.from([..."I\0\0\0\u0004"].map((byte) => byte.charCodeAt(0)));

function open(silenceMs: number): SteadySocket {
  const { port } = server.address() as AddressInfo;
  return new SteadySocket({ host: "127.0.0.1", port, tls: { mode: "off" }, silenceMs });
}

describe("a connection to a server that has fallen silent", () => {
  it("is lost when what was written is not answered for too long, which counts as an outage", async () => {
    const socket = open(50);
    socket.write(Buffer.from("select"));
    const [error] = (await once(socket, "error")) as [Error];
    expect(error.name).toBe("ConnectionClosedError");
    expect(isOutage(error)).toBe(true);
    await once(socket, "close");
  });

  it("stays when every write is answered, however long nothing is asked", async () => {
    jest.useFakeTimers({ doNotFake: ["nextTick", "setImmediate", "queueMicrotask"] });
    const socket = open(500);
    let failed = false;
    socket.on("error", () => {
      failed = true;
    });
    for (let round = 0; round < 3; round += 1) {
      socket.write(Buffer.from("select"));
      const [heard] = round === 0 ? ((await once(server, "connection")) as [Socket]) : accepted;
      jest.advanceTimersByTime(499);
      heard?.write(emptyQueryResponse);
      await once(socket, "data");
      jest.advanceTimersByTime(600);
    }
    expect(failed).toBe(false);
    socket.destroy();
  });
});

describe("what counts as an outage", () => {
  it.each(["ECONNREFUSED", "EHOSTUNREACH", "ENETUNREACH", "57P01", "40P01", "25006", "08006"])(
    "%s does",
    (code) => expect(isOutage({ code })).toBe(true),
  );

  it.each(["23505", "42601", "22001", "ENOENT", "EACCES"])("%s does not", (code) =>
    expect(isOutage({ code })).toBe(false),
  );
});
