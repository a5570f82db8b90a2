// A conversation is a tree of messages: an edited message or another answer is a sibling of the message that it replaces, and `chosen` says
// which sibling is shown. Conversations are plain objects, in the form in which they are stored and exported:
//
//   {id, title, created, updated, system, systemSet, sampling: {temperature, ...}, schema, schemaOn, probabilities, model,
//    nodes: {id: {id, parent, role: 'user' | 'assistant', content, created, ...}}, chosen: {parent or 'root': id}}
//
// systemSet: the time of the last change of the system prompt. model: the model chosen in this conversation, or ''.
// A user's node may have files: [{name, size, tokens, text}]. An assistant's node also has reasoning, toolCalls, finish ('stop', 'length',
// 'tool_calls', 'stopped' by the reader, 'interrupted', or null while the answer is written), problem, json, model, usage (of the last
// request), written (tokens of the whole answer, if it took several requests) and timing.
import { readFiles, withFiles } from './attachments.js';

export function newId() {
  const bytes = crypto.getRandomValues(new Uint8Array(9));
  return `m${Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')}`;
}

export function newConversation(defaults = {}) {
  const now = Date.now();
  return {
    id: newId(), title: '', created: now, updated: now, system: defaults.system ?? '', sampling: { ...defaults.sampling },
    schema: defaults.schema ?? '', schemaOn: defaults.schemaOn ?? false,
    probabilities: defaults.probabilities ?? false, model: defaults.model ?? '', nodes: {}, chosen: {},
  };
}

export const isEmpty = (conversation) => Object.keys(conversation.nodes).length === 0;

export function addNode(conversation, parent, fields) {
  const node = { id: newId(), parent, created: Date.now(), ...fields };
  conversation.nodes[node.id] = node;
  conversation.chosen[parent ?? 'root'] = node.id;
  conversation.updated = node.created;
  return node;
}

export const childrenOf = (conversation, parent) => Object.values(conversation.nodes).filter((node) => node.parent === parent);

/** Returns the shown messages, from the first to the last. */
export function pathOf(conversation) {
  const path = [];
  let parent = null;
  for (;;) {
    const chosen = conversation.nodes[conversation.chosen[parent ?? 'root']];
    if (!chosen || chosen.parent !== parent) return path;
    path.push(chosen);
    parent = chosen.id;
  }
}

export function pathTo(conversation, node) {
  const path = [];
  for (let at = node; at; at = conversation.nodes[at.parent]) path.unshift(at);
  return path;
}

export function choose(conversation, node) {
  conversation.chosen[node.parent ?? 'root'] = node.id;
}

/** Returns a new conversation with the messages up to a node. */
export function forkAt(conversation, node) {
  const fork = newConversation(conversation);
  fork.title = conversation.title ? `${conversation.title} (branch)` : '';
  let parent = null;
  for (const { id: _, parent: __, ...fields } of pathTo(conversation, node)) {
    parent = addNode(fork, parent, structuredClone(fields)).id;
  }
  return fork;
}

export function titleOf(conversation) {
  if (conversation.title) return conversation.title;
  const first = pathOf(conversation)[0];
  const line = first?.content.trim().split('\n')[0] || first?.files?.[0]?.name || '';
  return line.length > 60 ? `${line.slice(0, 59).trimEnd()}…` : line || 'New conversation';
}

/** Returns the messages to send to the model for an answer that follows a node. */
export function messagesTo(conversation, node) {
  const messages = conversation.system.trim() ? [{ role: 'system', content: conversation.system }] : [];
  for (const { role, content, files, toolCalls } of pathTo(conversation, node)) {
    // Sends a call as text, because templates refuse a call without its result, and the page runs no tools.
    const calls = (toolCalls ?? []).map((call) => JSON.stringify({ name: call.name, arguments: call.arguments }));
    const text = [withFiles(content, files), ...calls].filter(Boolean).join('\n');
    if (text || role === 'user') messages.push({ role, content: text });
  }
  return messages;
}

/** Marks answers as interrupted if they were being written when their page was closed. */
export function settle(conversation) {
  for (const node of Object.values(conversation.nodes)) {
    if (node.role === 'assistant' && node.finish === null) node.finish = 'interrupted';
  }
  return conversation;
}

const isText = (value) => typeof value === 'string';
const isNumber = (value) => typeof value === 'number' && Number.isFinite(value);

/** Returns the conversation in parsed JSON, which may come from anywhere: only its known and well-formed parts. Null: no conversation. */
export function readConversation(value) {
  if (!value || typeof value !== 'object' || !isText(value.id) || !value.nodes || typeof value.nodes !== 'object') return null;
  const read = newConversation();
  read.id = value.id.slice(0, 64);
  for (const key of ['title', 'system', 'schema', 'model']) if (isText(value[key])) read[key] = value[key];
  for (const key of ['created', 'updated', 'systemSet']) if (isNumber(value[key])) read[key] = value[key];
  read.schemaOn = value.schemaOn === true;
  read.probabilities = value.probabilities === true;
  for (const [key, setting] of Object.entries(value.sampling ?? {})) {
    if (/^[a-z_]{1,40}$/.test(key) && (isNumber(setting) || isText(setting))) read.sampling[key] = setting;
  }
  read.nodes = Object.create(null);
  read.chosen = Object.create(null);
  for (const node of Object.values(value.nodes)) {
    if (!node || !isText(node.id) || !isText(node.content) || !['user', 'assistant'].includes(node.role)) continue;
    if (node.parent !== null && !Object.hasOwn(value.nodes, String(node.parent))) continue;
    read.nodes[node.id] = {
      id: node.id, parent: node.parent, role: node.role, content: node.content,
      created: isNumber(node.created) ? node.created : read.created,
      ...(node.role === 'assistant' ? readAnswer(node) : node.files ? { files: readFiles(node.files) } : {}),
    };
  }
  for (const [parent, id] of Object.entries(value.chosen ?? {})) if (read.nodes[id]) read.chosen[parent] = id;
  return breakRings(settle(read));
}

function readAnswer(node) {
  const answer = { finish: isText(node.finish) ? node.finish : null };
  for (const key of ['reasoning', 'model']) if (isText(node[key])) answer[key] = node[key];
  answer.json = node.json === true;
  answer.edited = node.edited === true;
  if (Array.isArray(node.toolCalls)) {
    answer.toolCalls = node.toolCalls.filter((call) => isText(call?.name))
      .map((call) => ({ name: call.name, arguments: String(call.arguments ?? '') }));
  }
  if (isNumber(node.usage?.prompt_tokens) && isNumber(node.usage?.completion_tokens)) {
    answer.usage = { prompt_tokens: node.usage.prompt_tokens, completion_tokens: node.usage.completion_tokens };
  }
  if (isNumber(node.written)) answer.written = node.written;
  if (isNumber(node.timing?.first) && isNumber(node.timing?.total)) {
    const { first, total, thought, pieces } = node.timing;
    answer.timing = { first, total, thought: isNumber(thought) ? thought : null, pieces: isNumber(pieces) ? pieces : 0 };
  }
  if (isText(node.problem?.title) && isText(node.problem?.text)) {
    answer.problem = { title: node.problem.title, text: node.problem.text };
  }
  return answer;
}

/** Removes nodes that cannot be reached from a root (their parents form a ring). */
function breakRings(conversation) {
  const reached = new Set();
  let front = [null];
  const byParent = new Map();
  for (const node of Object.values(conversation.nodes)) byParent.set(node.parent, [...(byParent.get(node.parent) ?? []), node]);
  while (front.length) {
    const next = front.flatMap((parent) => byParent.get(parent) ?? []);
    for (const node of next) reached.add(node.id);
    front = next.map((node) => node.id);
  }
  for (const id of Object.keys(conversation.nodes)) if (!reached.has(id)) delete conversation.nodes[id];
  return conversation;
}
