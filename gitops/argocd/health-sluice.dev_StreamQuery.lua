-- Health of a StreamQuery for Argo CD. It agrees with kstatus, which Flux uses, and tells besides
-- when one is suspended, or was asked for something that has not begun.
-- Argo CD runs it with Lua's base and table libraries only.
local meta, status = obj.metadata, obj.status or {}

local function condition(kind)
  for _, found in ipairs(status.conditions or {}) do
    if found.type == kind then
      return found
    end
  end
  return { status = "False" }
end

local function health(code, message)
  return { status = code, message = message or "" }
end

local ready, stalled = condition("Ready"), condition("Stalled")

if meta.deletionTimestamp ~= nil then
  return health("Progressing", ready.message)
end
if status.observedGeneration ~= meta.generation then
  local what = "generation " .. meta.generation
  return health("Progressing", "The operator has not looked at " .. what .. " yet.")
end

-- The operator keeps 512 characters of what it obeyed, and obeys nothing where it can't read a spec.
local asked = (meta.annotations or {})["sluice.dev/requestedAt"] or ""
local comparable = asked ~= "" and #asked <= 512 and stalled.reason ~= "InvalidSpec"
if comparable and asked ~= status.lastHandledRequestedAt then
  return health("Progressing", "Another attempt was asked for; the operator has not looked yet.")
end

if condition("Reconciling").status == "True" then
  return health("Progressing", ready.message)
end
if stalled.status == "True" then
  return health("Degraded", stalled.reason .. ": " .. (ready.message or ""))
end
if condition("Suspended").status == "True" then
  return health("Suspended", ready.message)
end
if ready.status == "True" then
  return health("Healthy", ready.message)
end
return health("Progressing", ready.message)
