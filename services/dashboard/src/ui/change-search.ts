import { useNavigate } from "@tanstack/react-router";
import { useCallback } from "react";

/**
 * Returns a function that changes filters in the address. With `isEntry`, the browser's Back undoes the change.
 */
export function useChangeSearch<Search extends object>({
  isEntry = false,
} = {}): (changed: Search) => void {
  const navigate = useNavigate();
  return useCallback(
    (changed) => {
      const search = (before: object) => ({ ...before, ...changed });
      void navigate({ to: ".", replace: !isEntry, search });
    },
    [navigate, isEntry],
  );
}
