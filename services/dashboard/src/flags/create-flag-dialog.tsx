import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { unwrap } from "../api/client.ts";
import { useSendOnce } from "../api/idempotency.ts";
import { ApiProblem } from "../api/problem.ts";
import type { CreateFlag, FlagType } from "../api/schema.d.ts";
import { useKeySession } from "../session/session.tsx";
import { Select, TextField } from "../ui/fields.tsx";
import { FormDialog } from "../ui/form-dialog.tsx";
import { putIntoList, readFlag } from "./flag-queries.ts";
import { flagTypes, suggestKey } from "./flag-search.ts";
import { requestedSettings, tagsProblem } from "./flag-settings.ts";
import { TagsAndOwner } from "./tags-and-owner.tsx";
import { booleanValues, creationText, ValueFields } from "./value-fields.tsx";

function useCreateFlag(onClose: () => void) {
  const { api } = useKeySession();
  const client = useQueryClient();
  const navigate = useNavigate();
  const sendOnce = useSendOnce();
  return useMutation({
    mutationFn: (text: string) =>
      sendOnce(text, async (header) => {
        const body = {} as CreateFlag;
        const request = { params: { header }, body, bodySerializer: () => text };
        const { key } = await unwrap(api.POST("/api/v1/flags", request));
        return { key, flag: await readFlag(api, key) };
      }),
    onSuccess: async ({ key, flag }) => {
      putIntoList(client, key, flag);
      onClose();
      await navigate({ to: "/flags/$flagKey", params: { flagKey: key } });
    },
  });
}

/** Creates a flag, which is off in every environment, and opens its page. */
export function CreateFlagDialog({ onClose }: { onClose: () => void }) {
  const [name, setName] = useState("");
  const [ownKey, setOwnKey] = useState<string>();
  const [description, setDescription] = useState("");
  const [type, setType] = useState<FlagType>("release");
  const [labels, setLabels] = useState({ tags: [] as string[], owner: null as string | null });
  const [values, setValues] = useState(booleanValues);
  const { mutate, isPending, error } = useCreateFlag(onClose);
  const key = ownKey ?? suggestKey(name);
  const settings = requestedSettings({ name, description, type, ...labels });
  const text = creationText({ key, ...settings }, values, navigator.language);
  const isTaken = error instanceof ApiProblem && error.code === "CONFLICT_001";
  return (
    <FormDialog
      title="Create a flag"
      action="Create flag"
      onClose={onClose}
      onSubmit={() => text !== undefined && mutate(text)}
      isPending={isPending}
      isComplete={
        name.trim() !== "" &&
        key !== "" &&
        tagsProblem(labels.tags) === undefined &&
        text !== undefined
      }
      error={isTaken ? null : error}
    >
      <TextField label="Name" value={name} onChange={setName} autoFocus isRequired />
      <TextField
        label="Key"
        value={key}
        onChange={setOwnKey}
        isCode
        isRequired
        description="Your code uses the key, so it cannot change later."
        error={isTaken ? "Another flag has this key." : undefined}
      />
      <TextField label="Description" value={description} onChange={setDescription} rows={2} />
      <ValueFields values={values} onChange={setValues} />
      <Select label="Type" value={type} onChange={setType} options={flagTypes} />
      <TagsAndOwner
        value={labels}
        onChange={(changed) => setLabels((before) => ({ ...before, ...changed }))}
      />
    </FormDialog>
  );
}
