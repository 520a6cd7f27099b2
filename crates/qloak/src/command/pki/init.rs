//! `qloak pki init`.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use clap::Args;
use qloak_door::pki::PkiPlan;
use serde::Serialize;

use crate::{
    error::{Error, Outcome},
    output, words,
};

/// Make a CA and a certificate for each name
///
/// Every certificate is also good for localhost. Private keys are readable by their owner only.
#[derive(Debug, Args)]
pub(crate) struct Init {
    /// Folder to write to; made if missing
    #[arg(long, value_name = "DIR")]
    dir: PathBuf,
    /// Name of a node (its SAE ID); may be given several times, as the options below
    #[arg(long = "node", value_name = "NAME")]
    nodes: Vec<String>,
    /// Name of a KMS (its KME ID)
    #[arg(long = "kms", value_name = "NAME")]
    kms: Vec<String>,
    /// Name of a controller
    #[arg(long = "controller", value_name = "NAME")]
    controllers: Vec<String>,
    /// Name of an operator: a person or a script
    #[arg(long = "operator", value_name = "NAME")]
    operators: Vec<String>,
    /// Address or host name under which NAME is reached; without NAME=, one under which all are
    #[arg(long = "host", value_name = "[NAME=]ADDRESS")]
    hosts: Vec<String>,
    /// Add what is missing to a folder that has a CA already
    #[arg(long, conflicts_with = "force")]
    add: bool,
    /// Make everything anew, the CA too; certificates of the old CA are worth nothing then
    #[arg(long)]
    force: bool,
}

/// A certificate that was made, or was there.
#[derive(Debug, Serialize)]
struct Made {
    name: String,
    role: &'static str,
    certificate: PathBuf,
    key: PathBuf,
    hosts: Vec<String>,
    new: bool,
}

impl Init {
    pub(super) fn run(&self, json: bool) -> Result<Outcome, Error> {
        let identities = self.identities();
        if identities.is_empty() {
            return Err(Error::Usage(
                "no certificate is asked for: give --node, --kms, --controller or --operator with a name".into(),
            ));
        }
        let hosts = self.hosts_by_name(&identities)?;
        self.clear_the_way(&identities)?;
        let mut made = Vec::new();
        for (name, role) in &identities {
            let own = hosts.get(name).cloned().unwrap_or_default();
            let plan = plan_of(name, role, &own);
            let issued = plan.write(&self.dir)?;
            let certificate = self.dir.join(format!("{name}.pem"));
            made.push(Made {
                name: name.clone(),
                role,
                new: issued.written.contains(&certificate),
                key: certificate.with_extension("key"),
                certificate,
                hosts: own,
            });
        }
        if json {
            output::json(
                &serde_json::json!({ "ca": self.dir.join("ca.pem"), "certificates": made }),
            )?;
        } else {
            output::text_line(&self.in_words(&made))?;
        }
        Ok(Outcome::Well)
    }

    fn identities(&self) -> Vec<(String, &'static str)> {
        use qloak_door::role;
        [
            (&self.nodes, role::NODE),
            (&self.kms, role::KMS),
            (&self.controllers, role::CONTROLLER),
            (&self.operators, role::OPERATOR),
        ]
        .into_iter()
        .flat_map(|(names, role)| names.iter().map(move |name| (name.clone(), role)))
        .collect()
    }

    /// The hosts of each name: localhost, those for all, its own.
    fn hosts_by_name(
        &self,
        identities: &[(String, &'static str)],
    ) -> Result<BTreeMap<String, Vec<String>>, Error> {
        let mut hosts: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (name, _) in identities {
            let local = ["localhost", "127.0.0.1", "::1"]
                .map(str::to_owned)
                .to_vec();
            if hosts.insert(name.clone(), local).is_some() {
                return Err(Error::Usage(format!("the name {name:?} is given twice")));
            }
        }
        for host in &self.hosts {
            match host.split_once('=') {
                Some((name, address)) => match hosts.get_mut(name) {
                    Some(own) => own.push(address.to_owned()),
                    None => {
                        return Err(Error::unknown(
                            "name among those given",
                            name,
                            hosts.keys().map(String::as_str),
                        ));
                    }
                },
                None => hosts.values_mut().for_each(|own| own.push(host.clone())),
            }
        }
        // The whole plan is checked before anything is written.
        for (name, own) in &hosts {
            if own.iter().any(String::is_empty) {
                return Err(Error::Usage(format!("--host {name}= names no address")));
            }
        }
        Ok(hosts)
    }

    /// Nothing is overwritten that was not meant to be.
    fn clear_the_way(&self, identities: &[(String, &'static str)]) -> Result<(), Error> {
        let authority = self.dir.join("ca.pem");
        let there = authority.exists() || self.dir.join("ca.key").exists();
        if there && !self.add && !self.force {
            return Err(Error::file(
                authority,
                "there is a CA already; --add issues what is missing under it, --force makes everything anew \
                 (certificates of the old CA are worth nothing then)",
            ));
        }
        if self.force {
            let names = identities.iter().map(|(name, _)| name.as_str());
            for name in names.chain(["ca"]) {
                for kind in ["pem", "key"] {
                    remove(&self.dir.join(format!("{name}.{kind}")))?;
                }
            }
        }
        Ok(())
    }

    fn in_words(&self, made: &[Made]) -> String {
        let mut table =
            output::table(["name", "role", "certificate", "private key", "good for", ""]);
        for one in made {
            table.add_row([
                output::name(&one.name),
                one.role.into(),
                one.certificate.display().into(),
                one.key.display().into(),
                one.hosts.join(" ").into(),
                if one.new {
                    "made"
                } else {
                    "was there, left alone"
                }
                .into(),
            ]);
        }
        let table = output::shown(&table);
        let dir = self.dir.display();
        let mut next = vec![
            "ca.key issues further certificates: keep it off the machines that run Qloak."
                .to_owned(),
            format!(
                "Each program needs ca.pem, its own .pem and its own .key:  [tls] ca = \"{dir}/ca.pem\" ..."
            ),
        ];
        if let Some(operator) = self.operators.first() {
            next.push(format!(
                "For commands:  export QLOAK_PKI={dir} QLOAK_AS={operator} QLOAK_CONTROLLER=https://...  then  qloak status"
            ));
        }
        format!(
            "{} under {dir}/ca.pem\n\n{table}\n\nNext:\n  {}",
            words::plural(made.len() as u64, "certificate"),
            next.join("\n  ")
        )
    }
}

fn plan_of(name: &str, role: &str, hosts: &[String]) -> PkiPlan {
    let mut plan = PkiPlan {
        hosts: hosts.to_vec(),
        ..PkiPlan::default()
    };
    let names = match role {
        qloak_door::role::NODE => &mut plan.nodes,
        qloak_door::role::KMS => &mut plan.kms,
        qloak_door::role::CONTROLLER => &mut plan.controllers,
        _ => &mut plan.operators,
    };
    names.push(name.to_owned());
    plan
}

fn remove(path: &Path) -> Result<(), Error> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(Error::file(path, error)),
        _ => Ok(()),
    }
}
