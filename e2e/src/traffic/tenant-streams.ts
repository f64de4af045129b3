import { type EventStream, openEventStream } from "@halyard/testing";
import type { Edge, System } from "../system/system.ts";
import type { Tenant } from "../system/tenancy.ts";
import { sendRaw } from "./raw-request.ts";

/**
 * Opens the streams of a tenant, of both kinds, as its applications do. Counts the open streams on this side: from the
 * response until this side closes the stream or detects its end. An edge detects a closed connection later than this
 * side, so it never has fewer open streams than are counted here.
 */
/** The gauge of open streams that an edge counts for other edges. */
export const streamsElsewhere = "halyard_stream_slots_other_streams";

type StreamKind = "values" | "ofrep";

export type TenantStreams = {
  /** Opens a stream with one attempt. A rejected stream ends immediately. */
  open(edge: Edge, kind?: StreamKind): Promise<TenantStream>;
  /** The open streams. */
  opened: ReadonlySet<TenantStream>;
  close(streams: Iterable<TenantStream>): void;
};

type TenantStream = EventStream & { edge: Edge };

export async function followStreams(system: System, tenant: Tenant): Promise<TenantStreams> {
  const [edge] = system.edges;
  const bulk = await sendRaw(edge?.url ?? "", {
    method: "POST",
    path: "/ofrep/v1/evaluate/flags",
    body: '{"context":{}}',
    headers: { authorization: `Bearer ${tenant.clientKey}`, "content-type": "application/json" },
  });
  const { requestUri } = JSON.parse(bulk.text).eventStreams[0].endpoint;
  const withToken = new URL(requestUri, edge?.url);
  const opened = new Set<TenantStream>();
  const close = (streams: Iterable<TenantStream>) => {
    for (const stream of [...streams]) {
      opened.delete(stream);
      stream.close();
    }
  };
  system.endsWithSystem(async () => close(opened));
  return {
    opened,
    close,
    async open(at, kind = "values") {
      const stream =
        kind === "values"
          ? await openEventStream(`${at.url}/api/v1/sdk/stream`, {
              authorization: `Bearer ${tenant.clientKey}`,
            })
          : await openEventStream(at.url + withToken.pathname + withToken.search, {});
      const ours = { ...stream, edge: at };
      if (stream.status === 200) {
        opened.add(ours);
        void stream.ended.then(() => opened.delete(ours));
      }
      return ours;
    },
  };
}

/** Returns the number of streams by status. */
export function byStatus(streams: readonly EventStream[]): Record<number, number> {
  const counts: Record<number, number> = {};
  for (const { status } of streams) counts[status] = (counts[status] ?? 0) + 1;
  return counts;
}
