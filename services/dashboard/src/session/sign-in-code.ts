import { AdvisedError } from "../api/problem.ts";

/** The fragment that carries the one-time code of `npm start`: `/#code=…`. Browsers do not send fragments to servers. */
const fragment = /^#code=([A-Za-z0-9_-]+)$/;

/**
 * Exchanges the one-time code of the address for a server key, and removes it from the address and the history of the
 * browser. Returns undefined without a code. Throws an error with a readable message if the code is invalid.
 */
export async function exchangeCode(): Promise<string | undefined> {
  const code = fragment.exec(window.location.hash)?.[1];
  if (code === undefined) return undefined;
  window.history.replaceState(null, "", window.location.pathname + window.location.search);
  const response = await fetch("/dashboard/sign-in", {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ code }),
  });
  if (!response.ok)
    throw new AdvisedError(
      "The sign-in link was used already or is older than five minutes.",
      "Enter a server key instead.",
    );
  const { server_key } = (await response.json()) as { server_key: string };
  return server_key;
}
