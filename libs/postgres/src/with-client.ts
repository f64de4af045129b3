import pg from "pg";
import { clientSettings } from "./connect.ts";

/** Connects, runs the work, and waits until the connection is closed. */
export async function withClient<Result>(
  url: string,
  work: (client: pg.Client) => Promise<Result>,
): Promise<Result> {
  const client = new pg.Client(clientSettings(url));
  // Without a listener, the loss of the connection would end the process. The statement rejects anyway.
  client.on("error", () => undefined);
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}
