import { closePages } from "../../src/system/openfeature.ts";

const hourMs = 60 * 60 * 1_000;
const presentHour = () => Math.floor(Date.now() / hourMs);

/**
 * Wraps a test that expects 304 because nothing changes. At each full hour, the URL of the stream changes, which
 * changes the response. A test that fails across this moment is repeated.
 */
export function inOneHour(test: () => Promise<void>): () => Promise<void> {
  return async () => {
    const hour = presentHour();
    try {
      await test();
    } catch (error) {
      if (presentHour() === hour) throw error;
      await closePages();
      await test();
    }
  };
}
