import pg from "pg";
import { clientSettings } from "./connect.ts";

/** Connects, does the work, and waits until the connection is closed. */
export async function withClient<Result>(
  url: string,
  work: (client: pg.Client) => Promise<Result>,
): Promise<Result> {
  const client = new pg.Client(clientSettings(url));
  // A lost connection rejects the statement.
  client.on("error", () => undefined);
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}
