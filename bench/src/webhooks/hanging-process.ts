import { type AddressInfo, createServer, type Socket } from "node:net";
import { answerParent } from "../processes/answer-parent.ts";

/** Targets that accept requests and never respond, each on its own port. */
const targets = Number(process.env.TARGETS);
const sockets = new Set<Socket>();

const urls = await Promise.all(Array.from({ length: targets }, listen));
answerParent({
  greeting: { urls },
  /** Closes all waiting requests. */
  async answer() {
    for (const socket of sockets) socket.destroy();
    return {};
  },
});

function listen(): Promise<string> {
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.resume();
    socket.on("error", () => undefined);
    socket.on("close", () => sockets.delete(socket));
  });
  return new Promise((resolve) => {
    server.listen(0, "127.0.0.1", () => {
      resolve(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`);
    });
  });
}
