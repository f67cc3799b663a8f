// The texts of where an instance is: what starts it, what a look at its server found, and its moves into a cell and back, in both
// languages in one file: they are fetched with what shows them and are no part of the first load, which every text of the
// dictionaries is.
import { fill, type Values } from '@tidepool/shared/i18n/translate';
import { useCallback } from 'react';
import { useText, type Key } from '../messages';

export const en = {
  'place.runner': 'Started by',
  'place.runner.unit': 'A unit of the server’s systemd',
  'place.runner.user_unit': 'A unit of its user’s own systemd',
  'place.runner.container': 'Docker, as a container',
  'place.runner.process': 'Nobody: somebody started its process by hand, and tidepool only observes it',
  'place.runner.address': 'Not known: it answers at an address of its own',
  'place.runnerNone': 'Nothing yet',
  'place.none': 'It is on no server yet',
  'place.noneText':
    'Nobody can use it. Does a gateway of OpenClaw with port {port} run on {server} already? Then look for it. Otherwise have it made there.',
  'place.making': 'A task makes it on {server}.',
  'place.look': 'Look for it on its server',
  'place.make': 'Make it on its server',
  'place.makeQueued': 'Queued: {name} is made on its server by a task.',
  'place.lookTitle': 'Look for {name} on {server}',
  'place.lookLead':
    'tidepool looks for a gateway of OpenClaw with port {port} and adopts it. Its home and its user are never cleaned, pooled or deleted.',
  'place.lookSubmit': 'Look for it',
  'place.lookAgain': 'Look again',
  'place.adopted': 'It was found and adopted.',
  'place.adoptedTask': 'A task writes its configuration.',
  'place.answers': 'It answers at its own address. Nothing of it is known on {server}.',
  'place.nothing': 'Nothing was adopted: {detail}.',
  'place.nothingText':
    'It stays on no server. Correct the cause on {server} or the port of the record and look again, or have it made there.',
  'place.notThere': 'There is nothing to compare yet',
  'place.notThereText': 'Its records and its server are compared once it is on its server.',
  'place.elsewhere': 'There is nothing to compare',
  'place.elsewhereText': 'It answers at an address of its own. tidepool knows nothing of it on its server.',
  'create.keepsLlm': 'A gateway that is found there keeps its own model provider',
  'create.keepsLlmHint':
    'If you name a port, and a gateway of OpenClaw has it on the server already, that is adopted. Without this it gets a key and the models of our LLM gateway.',
  'create.adopted': '{name} is created. Its gateway was found on the server and adopted.',
  'create.answers': '{name} is created. It answers at its own address.',
  'create.provisioning': '{name} is created. A task makes it on its server.',
  'create.leftTitle': '{name} is created, but it is on no server',
  'create.left': 'Nobody can use it yet.',
  'create.notLooked': 'tidepool did not look for it on {server}.',
  'create.leftNext': 'Open it to look for it on its server, or to have it made there.',
  'create.open': 'Open {name}',
  'delete.containerText':
    'It leaves the console, and its key is disabled; port {port} becomes free. Its container on {server} is not touched.',
  'delete.containerStoppedText':
    'Its container on {server} is stopped, and stays there; port {port} becomes free. Its key is disabled.',
  'delete.untouchedText':
    'It leaves the console, and its key is disabled; port {port} becomes free. What runs on {server} is not touched.',
  'move.into': 'Move into a cell',
  'move.intoTitle': 'Move {name} into a cell?',
  'move.intoLead': 'A task does this on {server}:',
  'move.stops': 'It is stopped. Whoever chats with it is interrupted for a minute or so.',
  'move.copies':
    'Its state is copied from {home} into a home that tidepool makes, with a Unix user of its own.',
  'move.starts': 'It starts there, in a cell. If it does not start, everything goes back to where it was.',
  'move.keeps': 'What was adopted stays stopped in {home}, as the way back.',
  'move.keepsProcess':
    'What was adopted stays in {home}. It runs as a bare process, so tidepool cannot start the old one again: if the move fails, somebody has to start it by hand.',
  'move.startsProcess': 'It starts there, in a cell.',
  'move.ownHint': 'Its use and costs are not counted here.',
  'move.intoQueued': 'Queued: {name} is moved into a cell by a task.',
  'move.from': 'Moved from',
  'move.fromText': 'It can be moved back to there.',
  'move.can': 'It can be moved into a cell of its own.',
  'move.observed':
    'It runs as a bare process outside of any cell: nothing starts it again, and tidepool writes nothing there.',
  'move.outside': 'It was adopted as it runs, outside of any cell: no limit holds for it.',
  'move.back': 'Move back',
  'move.backTitle': 'Move {name} back?',
  'move.backWarning':
    'What was said since it was moved stays behind: that is kept with its home on the server for seven days, and is not brought along.',
  'move.backText':
    'It is stopped in its cell and starts again in {home}, as it was before it was moved. Whoever chats with it is interrupted for a minute or so.',
  'move.backProcess':
    'It is stopped in its cell. Nothing starts it in {home}: somebody has to start it there by hand, as before.',
  'move.backQueued': 'Queued: {name} is moved back by a task.',
};

type OwnKey = keyof typeof en;
export type PlaceKey = Key | OwnKey;
export type Translate = (key: PlaceKey, values?: Values) => string;

export const zh: Record<OwnKey, string> = {
  'place.runner': '启动方式',
  'place.runner.unit': '服务器 systemd 的单元',
  'place.runner.user_unit': '其用户自己的 systemd 单元',
  'place.runner.container': 'Docker 容器',
  'place.runner.process': '无：进程由人手动启动，tidepool 仅观察它',
  'place.runner.address': '未知：它在自己的地址上应答',
  'place.runnerNone': '尚无',
  'place.none': '它还不在任何服务器上',
  'place.noneText':
    '目前无人可以使用。{server} 上是否已有端口为 {port} 的 OpenClaw 网关在运行？如果有，请查找；否则请在那里部署。',
  'place.making': '正由任务在 {server} 上部署。',
  'place.look': '在服务器上查找',
  'place.make': '在服务器上部署',
  'place.makeQueued': '已排队：将由任务在服务器上部署 {name}。',
  'place.lookTitle': '在 {server} 上查找 {name}',
  'place.lookLead':
    'tidepool 会查找端口为 {port} 的 OpenClaw 网关并接管它。其主目录和用户绝不会被清理、放入实例池或删除。',
  'place.lookSubmit': '查找',
  'place.lookAgain': '重新查找',
  'place.adopted': '已找到并接管。',
  'place.adoptedTask': '将由任务写入其配置。',
  'place.answers': '它在自己的地址上应答。{server} 上没有找到它的任何内容。',
  'place.nothing': '没有接管任何内容：{detail}。',
  'place.nothingText':
    '它仍不在任何服务器上。请在 {server} 上排除原因或更正记录中的端口后重新查找，或在那里部署。',
  'place.notThere': '尚无可对比的内容',
  'place.notThereText': '部署到服务器之后，才会对比其记录与服务器。',
  'place.elsewhere': '没有可对比的内容',
  'place.elsewhereText': '它在自己的地址上应答，tidepool 不知道它在服务器上的任何内容。',
  'create.keepsLlm': '找到的网关保留自己的模型提供商',
  'create.keepsLlmHint':
    '如果填写了端口，而服务器上已有使用该端口的 OpenClaw 网关，会接管它。取消勾选则让它使用我们 LLM 网关的密钥和模型。',
  'create.adopted': '已创建 {name}，并接管了在服务器上找到的网关。',
  'create.answers': '已创建 {name}，它在自己的地址上应答。',
  'create.provisioning': '已创建 {name}，将由任务在服务器上部署。',
  'create.leftTitle': '已创建 {name}，但它不在任何服务器上',
  'create.left': '目前无人可以使用。',
  'create.notLooked': 'tidepool 没有在 {server} 上查找它。',
  'create.leftNext': '请打开它，在服务器上查找或在那里部署。',
  'create.open': '打开 {name}',
  'delete.containerText': '它会从控制台移除，密钥被停用，端口 {port} 被释放。{server} 上的容器不受影响。',
  'delete.containerStoppedText': '{server} 上的容器将停止，但会保留；端口 {port} 被释放，密钥被停用。',
  'delete.untouchedText': '它会从控制台移除，密钥被停用，端口 {port} 被释放。{server} 上运行的内容不受影响。',
  'move.into': '迁入沙箱',
  'move.intoTitle': '将 {name} 迁入沙箱？',
  'move.intoLead': '将由任务在 {server} 上执行：',
  'move.stops': '停止该助手。正在与它对话的人会中断约一分钟。',
  'move.copies': '把其状态从 {home} 复制到 tidepool 创建的主目录，并使用独立的 Unix 用户。',
  'move.starts': '在沙箱中启动。如果无法启动，一切恢复原状。',
  'move.keeps': '原来的内容停止并保留在 {home}，作为退路。',
  'move.keepsProcess':
    '原来的内容保留在 {home}。它是由人手动启动的进程，tidepool 无法重新启动原来的进程：如果迁移失败，必须由人手动启动。',
  'move.startsProcess': '在沙箱中启动。',
  'move.ownHint': '其用量和费用不计入此处。',
  'move.intoQueued': '已排队：将由任务把 {name} 迁入沙箱。',
  'move.from': '迁移自',
  'move.fromText': '可以迁回原处。',
  'move.can': '可以迁入独立的沙箱。',
  'move.observed':
    '它是沙箱之外由人手动启动的进程：没有任何机制会重新启动它，tidepool 也不在那里写入任何内容。',
  'move.outside': '它按原样被接管，运行在沙箱之外：不受任何上限约束。',
  'move.back': '迁回原处',
  'move.backTitle': '将 {name} 迁回原处？',
  'move.backWarning': '迁入之后的对话不会带回：它们随沙箱的主目录在服务器上保留七天。',
  'move.backText': '它会在沙箱中停止，并在 {home} 按迁移之前的样子重新启动。正在与它对话的人会中断约一分钟。',
  'move.backProcess': '它会在沙箱中停止。{home} 中没有任何机制会启动它：必须像以前一样由人手动启动。',
  'move.backQueued': '已排队：将由任务把 {name} 迁回原处。',
};

const isOwn = (key: PlaceKey): key is OwnKey => Object.hasOwn(en, key);

export function usePlaceText() {
  const i18n = useText();
  const { language, t: general } = i18n;
  const t = useCallback<Translate>(
    (key, values) => (isOwn(key) ? fill({ en, zh }[language][key], values, language) : general(key, values)),
    [language, general],
  );
  return { ...i18n, t };
}
