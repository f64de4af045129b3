import type { JetStreamManager, StreamInfo } from "@nats-io/jetstream";
import { findStream } from "./streams.ts";

export type StreamSize = {
  bytes: number;
  /** The bound that the broker applies; undefined for none. */
  maxBytes: number | undefined;
};

/**
 * Gives an existing stream a bound in bytes, and returns its size; undefined when it does not exist.
 *
 * A bound below the present size is not applied, because the broker would discard messages immediately.
 */
export async function boundStream(
  manager: JetStreamManager,
  name: string,
  maxBytes: number,
): Promise<StreamSize | undefined> {
  const info = await findStream(manager, name);
  if (info === undefined) return undefined;
  if (info.config.max_bytes === maxBytes || info.state.bytes > maxBytes) return sizeOf(info);
  return sizeOf(await manager.streams.update(name, { max_bytes: maxBytes }));
}

function sizeOf({ config, state }: StreamInfo): StreamSize {
  return { bytes: state.bytes, maxBytes: config.max_bytes > 0 ? config.max_bytes : undefined };
}
