import { useMutation, useQueryClient } from "@tanstack/react-query";
import { unwrap } from "../api/client.ts";
import { useSendOnce } from "../api/idempotency.ts";
import { isEditConflict } from "../api/problem.ts";
import type {
  AttributeCondition,
  Audience,
  ChangeAudienceList,
  UpdateAudience,
} from "../api/schema.d.ts";
import { ifVersion } from "../flags/state-route.ts";
import { audienceKey } from "../references/audience-queries.ts";
import { useKeySession } from "../session/session.tsx";

const onePath = "/api/v1/audiences/{key}";

/** Returns a function that shows a changed audience, and reads what depends on it again. */
export function useTakeAudience() {
  const client = useQueryClient();
  return async (audience: Audience) => {
    client.setQueryData(audienceKey(audience.key), audience);
    await client.invalidateQueries({ queryKey: ["audiences"] });
  };
}

/** Returns a function that reads an audience again if another person changed it first. */
function useRefreshOnConflict(key: string) {
  const client = useQueryClient();
  return async (error: unknown) => {
    if (isEditConflict(error)) await client.refetchQueries({ queryKey: audienceKey(key) });
  };
}

type Update = { version: number; body: UpdateAudience };

/** Changes the settings of an audience, or removes its list, if it still has the version that the person saw. */
export function useUpdateAudience(key: string, onSaved: (saved: Audience) => void) {
  const { api } = useKeySession();
  const take = useTakeAudience();
  return useMutation({
    mutationFn: ({ version, body }: Update) => {
      const params = { path: { key }, header: ifVersion(version) };
      // The types of the client have no member that can only be null.
      return unwrap(api.PATCH(onePath, { params, body: body as { list?: never } }));
    },
    onSuccess: async (saved) => {
      onSaved(saved);
      await take(saved);
    },
    onError: useRefreshOnConflict(key),
  });
}

/** Reads the states that a change of the alternatives would reach. The API checks the alternatives too. */
export function usePreview(key: string) {
  const { api } = useKeySession();
  return useMutation({
    mutationFn: async (match: AttributeCondition[][]) => {
      const request = { params: { path: { key } }, body: { match } };
      return (await unwrap(api.POST(`${onePath}/preview`, request))).flags;
    },
  });
}

/** Adds single entries to the list of an audience, and removes others. */
export function useChangeList(key: string) {
  const { api } = useKeySession();
  const sendOnce = useSendOnce();
  const take = useTakeAudience();
  return useMutation({
    mutationFn: (body: ChangeAudienceList) =>
      sendOnce(body, (header) =>
        unwrap(api.PATCH(`${onePath}/list`, { params: { path: { key }, header }, body })),
      ),
    onSuccess: take,
    // The cache would keep the id of a user.
    gcTime: 0,
  });
}

/** Reads whether the list of an audience has an entry. */
export function useLookUp(key: string) {
  const { api } = useKeySession();
  return useMutation({
    mutationFn: async (member: string) => {
      const request = { params: { path: { key } }, body: { member } };
      return (await unwrap(api.POST(`${onePath}/list/lookup`, request))).member;
    },
    gcTime: 0,
  });
}

/** `onDeleted` is called even if the page of the audience is gone before the response. */
export function useDeleteAudience(key: string, onDeleted: () => void) {
  const { api } = useKeySession();
  const client = useQueryClient();
  return useMutation({
    mutationFn: (version: number) =>
      unwrap(api.DELETE(onePath, { params: { path: { key }, header: ifVersion(version) } })),
    onSuccess: async () => {
      onDeleted();
      client.removeQueries({ queryKey: audienceKey(key) });
      await client.invalidateQueries({ queryKey: ["audiences"], exact: true });
    },
    onError: useRefreshOnConflict(key),
  });
}
