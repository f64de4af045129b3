import type { AddressInfo, Server } from "node:net";

/** The functions of a process as its parent calls them. Arguments and results are sent as JSON. */
export type Remote<Api> = {
  [Name in keyof Api]: Api[Name] extends (...given: infer Given) => infer Answer
    ? (...given: Given) => Promise<Awaited<Answer>>
    : never;
};

type Call = { name: string; given: never[] };

/** The child's side of a `Child`: sends a greeting, serves calls of its functions, and exits with its parent. */
export function answerParent(
  api: Record<string, (...given: never[]) => unknown>,
  greeting: object = {},
): void {
  async function answer({ name, given }: Call): Promise<void> {
    process.send?.({ answer: await api[name]?.(...given) });
  }
  process.on("message", (call) => void answer(call as Call));
  process.on("disconnect", () => process.exit());
  process.on("SIGTERM", () => process.exit());
  process.send?.(greeting);
}

/** Listens on a free port of this machine and returns the URL. */
export function listen(server: Server): Promise<string> {
  return new Promise((resolve) => {
    server.listen(0, "127.0.0.1", () =>
      resolve(`http://127.0.0.1:${(server.address() as AddressInfo).port}`),
    );
  });
}
