// The texts of what a server has already and of its adoption, in both languages in one file: they are fetched with a server's page
// and are no part of the first load, which every text of the dictionaries is.
import { fill, type Values } from '@tidepool/shared/i18n/translate';
import { useCallback } from 'react';
import { useText, type Key } from '../messages';

export const en = {
  'adopt.title': 'Assistants that are there already',
  'adopt.lead': 'OpenClaw gateways on this server that tidepool did not make. Looking changes nothing.',
  'adopt.look': 'Look for assistants',
  'adopt.again': 'Look again',
  'adopt.none': 'No other assistants',
  'adopt.noneText': 'Nothing of OpenClaw runs or is configured here that tidepool does not know.',
  'adopt.incomplete': 'The server did not answer to the end: there may be more.',
  'adopt.known': 'Known as {id}',
  'adopt.summary': '{can} can be adopted, {cannot} cannot.',
  'adopt.summaryKnown': 'Known already: {count}.',
  'adopt.source': 'Find the e-mails of their employees',
  'adopt.sourceText':
    'Optional. The look then also reads an e-mail address of each. What stands there is its user’s own word: check the addresses before you adopt.',
  'adopt.emailFile': 'E-mail from a file',
  'adopt.emailFileHint': 'A path below each home, such as .config/owner',
  'adopt.emailField': 'E-mail from a field of the configuration',
  'adopt.emailFieldHint': 'Its parts separated by dots, such as env.vars.OWNER',
  'adopt.all': 'Select all that can be adopted',
  'adopt.select': 'Select {name}',
  'adopt.open': 'Adopt ({count})',
  'adopt.runner.unit': 'Unit',
  'adopt.runner.user_unit': 'User unit',
  'adopt.runner.process': 'Process',
  'adopt.runner.container': 'Container',
  'adopt.runner.home': 'Configuration',
  'adopt.of': 'of {user}',
  'adopt.stopped': 'Stopped',
  'adopt.running': 'Runs',
  'adopt.observedOnly': 'observed only',
  'adopt.observedOnlyText':
    'Nothing starts it again. tidepool watches it, and writes nothing there until it is moved into a cell.',
  'adopt.noLinger':
    'It ends when {user} logs out. To keep it running, enter “loginctl enable-linger {user}” on the server.',
  'adopt.port': 'port {port}',
  'adopt.openToOthers': 'reachable from other machines',
  'adopt.session': 'last used {time}',
  'adopt.dialog': 'Adopt {count} {count, plural, one {assistant} other {assistants}}',
  'adopt.dialogOne': 'Adopt {name}',
  'adopt.dialogLead':
    'Each becomes an instance where it is, with its own home, port and token. Its home and its user are never cleaned, pooled or deleted.',
  'adopt.llm': 'Models',
  'adopt.llmOwn': 'Keep its own provider',
  'adopt.llmOurs': 'Use our LLM gateway',
  'adopt.llmOwnHint': 'Nothing is written. Its use and costs are not counted here.',
  'adopt.llmOursHint': 'It gets a key and the models of our LLM gateway, and its use is counted.',
  'adopt.restart': 'Restart at once what needs it',
  'adopt.restartHint': 'Otherwise that waits for the next restart, or for you.',
  'adopt.id': 'Id',
  'adopt.name': 'Name',
  'adopt.email': 'Employee’s e-mail',
  'adopt.emailHint': 'Optional',
  'adopt.csv': 'Map to employees by CSV',
  'adopt.csvHint':
    'The first line names the columns: email, and one of key, name, user, home or id. Each line gives its e-mail to the assistants below that it names.',
  'adopt.csvFile': 'CSV file',
  'adopt.csvLimit': 'At most 512 KiB.',
  'adopt.csvText': 'Or paste lines',
  'adopt.csvTooLarge': 'The file is larger than 512 KiB. Split it.',
  'adopt.csvNotText': 'The file is not UTF-8. Save it as “CSV UTF-8” and choose it again.',
  'adopt.csvApply': 'Fill in the e-mails',
  'adopt.csvDone': '{count} of {all} got an e-mail.',
  'adopt.csvLeft': 'Lines that gave nobody an e-mail: {count}',
  'adopt.csvMore': 'and {count} more',
  'adopt.csvLine.unnamed': 'Line {line}: it names no assistant.',
  'adopt.csvLine.unmatched': 'Line {line}: none of these assistants is “{name}”.',
  'adopt.csvLine.noAddress': 'Line {line}: it has no e-mail address for “{name}”.',
  'adopt.csvLine.taken': 'Line {line}: an earlier line has another e-mail for “{name}”.',
  'adopt.csvProblem.unclosed': 'Line {line}: a quote begins there that is never closed.',
  'adopt.csvProblem.noEmailColumn': 'Line {line}: it must name the columns, and one must be email.',
  'adopt.csvProblem.noNameColumn':
    'Line {line}: beside email it must name one of the columns key, name, user, home or id.',
  'adopt.csvProblem.noLines': 'There is no line below the names of the columns.',
  'adopt.preview': 'Preview',
  'adopt.back': 'Back',
  'adopt.confirm': 'Adopt ({count})',
  'adopt.for': 'for {email}',
  'adopt.nothing': 'Nothing is changed on the server.',
  'adopt.nothingObserved':
    'Nothing is changed on the server. It is only observed: nothing starts it again, and it keeps its own provider until it is moved into a cell.',
  'adopt.writes': '{count} {count, plural, one {setting is written} other {settings are written}}',
  'adopt.writesOne': 'One setting is written',
  'adopt.comma': ', ',
  'adopt.restarts': 'restarted at once',
  'adopt.waits': 'part of it waits for a restart',
  'adopt.skipped': 'Left out: {reason}',
  'adopt.done': 'Adopted {adopted}, left out {skipped}.',
  'adopt.adopted': 'Adopted.',
  'adopt.written': 'Its configuration is being written.',
  'adopt.obstacle.home': 'Nothing runs it: there is only a configuration. Start it there, then look again.',
  'adopt.obstacle.container_stopped': 'Its container does not run. Start the container, then look again.',
  'adopt.obstacle.port_not_published':
    'Docker publishes no port of its gateway on the server, so that tidepool cannot reach it. Publish the port, then look again.',
  'adopt.obstacle.not_on_loopback':
    'It does not listen on the server’s loopback, so that tidepool cannot reach it. Set gateway.bind there to loopback or lan, restart it, then look again.',
  'adopt.obstacle.state_elsewhere':
    'Its files are not in the folder .openclaw of a home. Move them there, start it with that home, then look again.',
  'adopt.obstacle.home_unknown': 'Its home is not known. Start it with the variable HOME, then look again.',
  'adopt.obstacle.no_token':
    'Its gateway has no token, which tidepool needs to talk to it. Set gateway.auth.token there, then look again.',
  'adopt.obstacle.config_broken':
    'Its configuration cannot be parsed. Correct .openclaw/openclaw.json in its home, then look again.',
  'adopt.obstacle.config_missing':
    'It has no configuration. Write .openclaw/openclaw.json in its home, then look again.',
  'adopt.obstacle.config_too_large':
    'Its configuration is larger than the 256 KiB that tidepool reads. Shorten .openclaw/openclaw.json in its home, then look again.',
  'adopt.obstacle.config_unreadable':
    'Its configuration cannot be read. Give its user the right to read .openclaw/openclaw.json in its home, then look again.',
};

type OwnKey = keyof typeof en;
export type AdoptKey = Key | OwnKey;
export type Translate = (key: AdoptKey, values?: Values) => string;

export const zh: Record<OwnKey, string> = {
  'adopt.title': '服务器上已有的助手',
  'adopt.lead': '此服务器上不是由 tidepool 创建的 OpenClaw 网关。查找不会更改任何内容。',
  'adopt.look': '查找助手',
  'adopt.again': '重新查找',
  'adopt.none': '没有其他助手',
  'adopt.noneText': '没有 tidepool 尚不知道的 OpenClaw 在此运行或配置。',
  'adopt.incomplete': '服务器的回答不完整，可能还有更多。',
  'adopt.known': '已登记为 {id}',
  'adopt.summary': '{can} 个可以接管，{cannot} 个不能接管。',
  'adopt.summaryKnown': '已登记：{count} 个。',
  'adopt.source': '查找对应员工的邮箱',
  'adopt.sourceText': '可选。查找时会同时读取每个助手的邮箱地址。这些内容由其用户自行填写，接管前请核对。',
  'adopt.emailFile': '从文件读取邮箱',
  'adopt.emailFileHint': '各主目录下的路径，例如 .config/owner',
  'adopt.emailField': '从配置字段读取邮箱',
  'adopt.emailFieldHint': '以点号分隔，例如 env.vars.OWNER',
  'adopt.all': '选择所有可接管的助手',
  'adopt.select': '选择 {name}',
  'adopt.open': '接管（{count}）',
  'adopt.runner.unit': '系统单元',
  'adopt.runner.user_unit': '用户单元',
  'adopt.runner.process': '进程',
  'adopt.runner.container': '容器',
  'adopt.runner.home': '仅有配置',
  'adopt.of': '属于 {user}',
  'adopt.stopped': '已停止',
  'adopt.running': '运行中',
  'adopt.observedOnly': '仅观察',
  'adopt.observedOnlyText':
    '没有任何机制会重新启动它。tidepool 只观察它，迁入沙箱之前不会在那里写入任何内容。',
  'adopt.noLinger':
    '{user} 注销后它会停止。要让它继续运行，请在服务器上执行 “loginctl enable-linger {user}”。',
  'adopt.port': '端口 {port}',
  'adopt.openToOthers': '其他机器可访问',
  'adopt.session': '最后使用：{time}',
  'adopt.dialog': '接管 {count} 个助手',
  'adopt.dialogOne': '接管 {name}',
  'adopt.dialogLead':
    '每个助手都会在原处成为一个实例，保留自己的主目录、端口和令牌。其主目录和用户绝不会被清理、放入实例池或删除。',
  'adopt.llm': '模型',
  'adopt.llmOwn': '保留自己的提供商',
  'adopt.llmOurs': '使用我们的 LLM 网关',
  'adopt.llmOwnHint': '不写入任何内容。其用量和费用不计入此处。',
  'adopt.llmOursHint': '它会获得我们 LLM 网关的密钥和模型，用量会被统计。',
  'adopt.restart': '需要重启的内容立即重启生效',
  'adopt.restartHint': '否则将等到下次重启，或由您决定。',
  'adopt.id': '标识',
  'adopt.name': '名称',
  'adopt.email': '员工邮箱',
  'adopt.emailHint': '可选',
  'adopt.csv': '用 CSV 对应员工',
  'adopt.csvHint':
    '第一行是列名：email，以及 key、name、user、home 或 id 之一。每一行把邮箱填给下方与之对应的助手。',
  'adopt.csvFile': 'CSV 文件',
  'adopt.csvLimit': '最大 512 KiB。',
  'adopt.csvText': '或粘贴内容',
  'adopt.csvTooLarge': '文件超过 512 KiB，请拆分。',
  'adopt.csvNotText': '文件不是 UTF-8 编码。请另存为“CSV UTF-8”后重新选择。',
  'adopt.csvApply': '填入邮箱',
  'adopt.csvDone': '{all} 个助手中有 {count} 个填入了邮箱。',
  'adopt.csvLeft': '未能对应的行：{count}',
  'adopt.csvMore': '另外 {count} 行',
  'adopt.csvLine.unnamed': '第 {line} 行：没有写明是哪个助手。',
  'adopt.csvLine.unmatched': '第 {line} 行：这些助手中没有“{name}”。',
  'adopt.csvLine.noAddress': '第 {line} 行：“{name}”没有有效的邮箱地址。',
  'adopt.csvLine.taken': '第 {line} 行：前面的行已为“{name}”填入另一个邮箱。',
  'adopt.csvProblem.unclosed': '第 {line} 行：引号没有结束。',
  'adopt.csvProblem.noEmailColumn': '第 {line} 行：必须是列名，其中一列为 email。',
  'adopt.csvProblem.noNameColumn': '第 {line} 行：除 email 外，还必须有 key、name、user、home 或 id 之一。',
  'adopt.csvProblem.noLines': '列名下面没有内容。',
  'adopt.preview': '预览',
  'adopt.back': '返回',
  'adopt.confirm': '接管（{count}）',
  'adopt.for': '分配给 {email}',
  'adopt.nothing': '服务器上不会有任何更改。',
  'adopt.nothingObserved':
    '服务器上不会有任何更改。它只会被观察：没有任何机制会重新启动它，迁入沙箱之前它保留自己的提供商。',
  'adopt.writes': '将写入 {count} 项设置',
  'adopt.writesOne': '将写入 1 项设置',
  'adopt.comma': '，',
  'adopt.restarts': '立即重启',
  'adopt.waits': '其中一部分等待重启',
  'adopt.skipped': '未接管：{reason}',
  'adopt.done': '已接管 {adopted} 个，未接管 {skipped} 个。',
  'adopt.adopted': '已接管。',
  'adopt.written': '正在写入其配置。',
  'adopt.obstacle.home': '没有运行：只有一份配置。请先在那里启动它，再重新查找。',
  'adopt.obstacle.container_stopped': '其容器没有运行。请先启动容器，再重新查找。',
  'adopt.obstacle.port_not_published':
    'Docker 没有在服务器上发布其网关的端口，tidepool 无法连接。请先发布端口，再重新查找。',
  'adopt.obstacle.not_on_loopback':
    '它没有监听服务器的回环地址，tidepool 无法连接。请先在那里把 gateway.bind 设为 loopback 或 lan 并重启，再重新查找。',
  'adopt.obstacle.state_elsewhere':
    '其文件不在主目录的 .openclaw 文件夹中。请先移到那里并以该主目录启动，再重新查找。',
  'adopt.obstacle.home_unknown': '其主目录未知。请先设置变量 HOME 后启动它，再重新查找。',
  'adopt.obstacle.no_token':
    '其网关没有令牌，tidepool 需要令牌才能与它通信。请先在那里设置 gateway.auth.token，再重新查找。',
  'adopt.obstacle.config_broken':
    '其配置无法解析。请先更正其主目录中的 .openclaw/openclaw.json，再重新查找。',
  'adopt.obstacle.config_missing': '它没有配置。请先在其主目录中写入 .openclaw/openclaw.json，再重新查找。',
  'adopt.obstacle.config_too_large':
    '其配置超过 tidepool 可读取的 256 KiB。请先精简其主目录中的 .openclaw/openclaw.json，再重新查找。',
  'adopt.obstacle.config_unreadable':
    '其配置无法读取。请先让其用户有权读取主目录中的 .openclaw/openclaw.json，再重新查找。',
};

const isOwn = (key: AdoptKey): key is OwnKey => Object.hasOwn(en, key);

export function useAdoptText() {
  const i18n = useText();
  const { language, t: general } = i18n;
  const t = useCallback<Translate>(
    (key, values) => (isOwn(key) ? fill({ en, zh }[language][key], values, language) : general(key, values)),
    [language, general],
  );
  return { ...i18n, t };
}
