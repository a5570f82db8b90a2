// Exports conversations to files, and imports them.
import { fenced } from './attachments.js';
import { isEmpty, newId, pathOf, readConversation, titleOf } from './conversation.js';
import { el } from './dom.js';

const FORMAT = 'tessera-conversations';

function download(name, type, text) {
  const address = URL.createObjectURL(new Blob([text], { type }));
  el('a', { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 60000);
}

function nameOf(title) {
  return title.normalize('NFKC').replace(/[^\p{L}\p{N}]+/gu, '-').replace(/^-|-$/g, '').slice(0, 60) || 'conversation';
}

export function exportAll(conversations) {
  const kept = [...conversations].filter((conversation) => !isEmpty(conversation));
  const day = new Date().toISOString().slice(0, 10);
  const file = { format: FORMAT, version: 1, conversations: kept };
  download(`tessera-conversations-${day}.json`, 'application/json', `${JSON.stringify(file, null, 1)}\n`);
  return kept.length;
}

/** Returns the shown messages as Markdown. Only the export as JSON has the other versions. */
export function markdownOf(conversation) {
  const parts = [`# ${titleOf(conversation)}\n`];
  if (conversation.system.trim()) parts.push(`## System\n\n${conversation.system.trim()}\n`);
  for (const node of pathOf(conversation)) {
    parts.push(`## ${node.role === 'user' ? 'You' : node.model || 'Answer'}\n`);
    for (const file of node.files ?? []) parts.push(`${fenced(file)}\n`);
    if (node.content) parts.push(node.json ? `\`\`\`json\n${node.content.trim()}\n\`\`\`\n` : `${node.content.trim()}\n`);
    for (const call of node.toolCalls ?? []) parts.push(`Call of \`${call.name}\`:\n\n\`\`\`json\n${call.arguments}\n\`\`\`\n`);
  }
  return parts.join('\n');
}

export function exportMarkdown(conversation) {
  download(`${nameOf(titleOf(conversation))}.md`, 'text/markdown', markdownOf(conversation));
}

/** Returns the conversations of a file. Throws an Error in words for the reader. have: the present conversations, which are left out. */
export function readExport(text, have) {
  let value;
  try {
    value = JSON.parse(text);
  } catch {
    throw new Error('This file is not JSON. Choose one that “Export all” wrote.');
  }
  if (value?.format !== FORMAT || !Array.isArray(value.conversations)) {
    throw new Error('This file holds no conversations of this page. Choose one that “Export all” wrote.');
  }
  if (value.version !== 1) throw new Error(`This file is of version ${value.version}; this page reads version 1.`);
  const taken = [];
  let same = 0, bad = 0;
  for (const item of value.conversations) {
    const conversation = readConversation(item);
    if (!conversation || isEmpty(conversation)) {
      ++bad;
      continue;
    }
    const mine = have.get(conversation.id);
    if (mine && JSON.stringify(readConversation(mine)) === JSON.stringify(conversation)) {
      ++same;
      continue;
    }
    if (mine) conversation.id = newId();
    taken.push(conversation);
  }
  return { taken, same, bad };
}
