import { Link } from "@tanstack/react-router";
import type { User } from "../api/schema.d.ts";
import { DeleteUserDialog } from "../operator/user-dialogs.tsx";
import { usePendingSchedules } from "../schedules/schedule-queries.ts";
import { useKeySession } from "../session/session.tsx";
import { count } from "../ui/numbers.ts";
import { Warning } from "../ui/panels.tsx";

/** Deletes a user of the organization. Names the pending schedules of the user, which stay. */
export function DeleteMemberDialog({ user, onClose }: { user: User; onClose: () => void }) {
  const { api, me } = useKeySession();
  const { data: pending } = usePendingSchedules();
  const own = pending?.filter(({ created_by: id }) => id === user.id).length ?? 0;
  return (
    <DeleteUserDialog api={api} user={user} onClose={onClose}>
      {user.id === me.user.id && (
        <Warning>This is your own user: you lose access to the organization.</Warning>
      )}
      {own > 0 && (
        <p>
          <Link to="/schedules">Pending schedules of this user</Link> in {me.project.name}:{" "}
          {count(own)}. Clear those that are not to be applied.
        </p>
      )}
    </DeleteUserDialog>
  );
}
